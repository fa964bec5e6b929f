"""What the tokens of submitters, viewers and administrators are good for, and what not."""

from functools import partial
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    JOBS,
    OPERATE_VERB,
    PARENT_LABEL,
    QUEUE_LABEL,
    collection_path,
)
from support.cluster.api import Client
from support.cluster.enforcement import until
from support.driven.lives import succeeded
from support.objects.builders import job
from support.rights.principals import REVIEWS
from support.tenants.stolen import (
    ANYONE,
    HOME,
    SECRETS,
    UPWARDS,
    StolenTokenSetup,
    Theft,
    refused,
    theft,
    token_of,
)

pytestmark = pytest.mark.integration

READS = ("submitter", "viewer")
ADMITTED = {"status": {"admitted": True}}

WRITES = (
    theft(
        "write a status",
        lambda thief, setup: thief.merge(setup.life().status_path, ADMITTED),
    ),
    theft(
        "end a running job",
        lambda thief, setup: setup.life(Phase.RUNNING).move(succeeded, thief),
    ),
)
APPROVAL = {"payload": True, "sentBy": "ada"}
SIGNALS = (
    theft(
        "approve a job",
        lambda thief, setup: thief.merge(
            setup.life().path, {"spec": {"signals": {"approval": APPROVAL}}}
        ),
    ),
)
DELETES = (
    theft("delete a job", lambda thief, setup: thief.delete(setup.life().path)),
    theft("delete a queue", lambda thief, setup: thief.delete(setup.queue())),
)
THEFTS = (
    *ANYONE,
    *WRITES,
    *SIGNALS,
    *DELETES,
    theft(
        "cancel a job",
        lambda thief, setup: thief.merge(setup.life().path, {"spec": {"cancel": True}}),
    ),
    theft(
        "pause a queue",
        lambda thief, setup: thief.merge(setup.queue(), {"spec": {"paused": True}}),
    ),
    theft(
        "trigger a cron job",
        lambda thief, setup: thief.merge(setup.cron_job(), {"spec": {"trigger": 1}}),
    ),
    theft(
        "have a Secret read that it may not read itself",
        lambda thief, _: thief.create(
            collection_path(HOME, JOBS),
            job("theft", payloadFrom={"secretKeyRef": {"name": "orders", "key": "payload"}}),
        ),
    ),
)


@pytest.fixture(scope="module")
def thieves(setup: StolenTokenSetup) -> dict[str, Client]:
    roles = {
        "submitter": "asyncjob-job-submitter",
        "viewer": "asyncjob-job-viewer",
        "admin": "asyncjob-job-admin",
        "signaller": "asyncjob-job-signaller",
        "built-in-edit": "edit",
        "built-in-admin": "admin",
    }
    for account, role in roles.items():
        setup.space.account(account)
        setup.space.bind(account, role)
    return {account: setup.space.as_account(account) for account in roles}


@pytest.mark.parametrize("who", READS)
@pytest.mark.parametrize("tried", THEFTS, ids=str)
def test_a_submitter_or_viewer_cannot(
    setup: StolenTokenSetup, thieves: dict[str, Client], who: str, tried: Theft
) -> None:
    assert refused(tried.attempt(thieves[who], setup))


@pytest.mark.parametrize("tried", [*WRITES, *SIGNALS, *DELETES, *SECRETS, *UPWARDS], ids=str)
def test_an_administrator_of_jobs_cannot(
    setup: StolenTokenSetup, thieves: dict[str, Client], tried: Theft
) -> None:
    assert refused(tried.attempt(thieves["admin"], setup))


@pytest.mark.parametrize("who", ["built-in-edit", "built-in-admin"])
@pytest.mark.parametrize("tried", SIGNALS, ids=str)
def test_kubernetes_own_roles_approve_nothing(
    setup: StolenTokenSetup, thieves: dict[str, Client], who: str, tried: Theft
) -> None:
    assert refused(tried.attempt(thieves[who], setup))


@pytest.mark.parametrize("tried", [*THEFTS, *SECRETS, *UPWARDS], ids=str)
def test_who_sends_signals_cannot(
    setup: StolenTokenSetup, thieves: dict[str, Client], tried: Theft
) -> None:
    assert refused(tried.attempt(thieves["signaller"], setup))


def test_who_sends_signals_answers_and_reads_any_job_of_the_namespace_in_its_own_name(
    setup: StolenTokenSetup, thieves: dict[str, Client]
) -> None:
    life, thief = setup.life(payload={"iban": "DE02"}), thieves["signaller"]
    assert thief.get(life.path).object()["spec"]["payload"] == {"iban": "DE02"}
    name = f"system:serviceaccount:{HOME}:signaller"
    approved = {"spec": {"signals": {"approval": {**APPROVAL, "sentBy": name}}}}
    assert thief.merge(life.path, approved).accepted


def test_what_a_job_is_created_with_counts_only_where_its_author_has_a_say(
    setup: StolenTokenSetup, thieves: dict[str, Client]
) -> None:
    """Status, identity and times are the API server's; controls come later."""
    path, thief = collection_path(HOME, JOBS), thieves["submitter"]
    body = job("forged")
    body["status"] = {"phase": "Succeeded", "admitted": True, "attempt": 9}
    body["metadata"] |= {
        "uid": "forged",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "generation": 99,
        "managedFields": [{"manager": "asyncjob-operator", "operation": "Update"}],
    }
    made = thief.create(path, body).object()
    assert (made["status"]["phase"], made["status"].get("admitted")) == ("Queued", None)
    assert made["status"]["attempt"] == 0
    assert made["metadata"]["uid"] != "forged"
    assert not made["metadata"]["creationTimestamp"].startswith("2020")
    assert made["metadata"]["generation"] == 1
    assert all(one["manager"] != "asyncjob-operator" for one in made["metadata"]["managedFields"])
    for control in ("redrive", "rerun"):
        answer = thief.create(path, job("hopeful", **{control: 1}))
        assert "control.not-at-creation" in answer.message


def test_a_submitter_reads_all_jobs_of_the_namespace_and_makes_its_own_a_child_of_any(
    setup: StolenTokenSetup, thieves: dict[str, Client]
) -> None:
    """So submitters of one namespace trust each other; through the gateway neither goes."""
    thief, life = thieves["submitter"], setup.life(payload={"iban": "DE02"})
    assert thief.get(life.path).object()["spec"]["payload"] == {"iban": "DE02"}
    body: dict[str, Any] = job("labelled")
    uid = life.read()["metadata"]["uid"]
    body["metadata"]["labels"] = {PARENT_LABEL: uid, QUEUE_LABEL: "x"}
    made = thief.create(collection_path(HOME, JOBS), body).object()
    assert made["spec"].get("queue") == "default"  # no label steers that


def test_a_viewer_submits_nothing(thieves: dict[str, Client]) -> None:
    assert refused(thieves["viewer"].create(collection_path(HOME, JOBS), job("never")))


@pytest.mark.parametrize("who", ["built-in-edit", "built-in-admin"])
def test_who_edits_or_administers_a_namespace_does_not_operate_its_jobs(
    setup: StolenTokenSetup, thieves: dict[str, Client], who: str
) -> None:
    """The chart's roles are part of Kubernetes' own: a moment after they are installed."""
    thief = thieves[who]
    verb = "create" if who == "built-in-edit" else "control"
    until(lambda answer: may(answer.object()), partial(ask, setup, who, verb), f"{verb} by {who}")
    assert not may(ask(setup, who, OPERATE_VERB).object())
    assert refused(thief.merge(setup.life().status_path, ADMITTED))


def test_of_kubernetes_own_roles_admin_deletes_jobs_and_edit_does_not(
    setup: StolenTokenSetup, thieves: dict[str, Client]
) -> None:
    """As the chart's roles are aggregated; an administrator of jobs has no such right itself."""
    asks = partial(ask, setup, "built-in-admin", "delete")
    until(lambda answer: may(answer.object()), asks, "delete by built-in-admin")

    assert thieves["built-in-admin"].delete(setup.life(Phase.SUCCEEDED).path).accepted
    assert not may(ask(setup, "built-in-edit", "delete").object())
    assert not may(ask(setup, "admin", "delete").object())


def ask(setup: StolenTokenSetup, who: str, verb: str) -> Any:
    attributes = {
        "namespace": HOME,
        "group": "asyncjob.dev",
        "resource": JOBS,
        "verb": verb,
    }
    user = f"system:serviceaccount:{HOME}:{who}"
    spec = {"user": user, "resourceAttributes": attributes}
    kinds = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    return setup.admin.create(REVIEWS, {**kinds, "spec": spec})


def may(review: dict[str, Any]) -> bool:
    return bool(review["status"]["allowed"])


def test_who_administers_the_namespace_of_the_operator_cannot_bind_its_role_but_can_take_its_token(
    setup: StolenTokenSetup, thieves: dict[str, Client]
) -> None:
    """Kubernetes' own `edit` may ask for the token of any account there: keep people out of it."""
    [bind] = [one for one in UPWARDS if one.title == "give itself the operator's role"]
    assert refused(bind.attempt(thieves["built-in-admin"], setup))
    assert token_of("asyncjob-operator")(thieves["built-in-edit"], setup).accepted
