"""What no token of the chart's roles is good for, whoever it was stolen from: a table.

Each theft is tried with each token. A right that a role gives openly is not a theft: the role
`asyncjob-job-deleter` is there to delete jobs, and the operator sees to retention.
"""

from collections.abc import Callable
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    CRON_JOB_UID_LABEL,
    CRON_JOBS,
    JOBS,
    QUEUES,
    collection_path,
    queue_path,
)
from support.cluster.api import Answer, Client
from support.cluster.identities import Worker
from support.driven.lives import crashed, succeeded
from support.objects.builders import at, claim_of, job, queue
from support.tenants.stolen import ELSEWHERE, HOME, Attempt, StolenTokenSetup

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SUBMITTER, ADMIN, DELETER, GATEWAY = "job-submitter", "job-admin", "job-deleter", "gateway"
WORKER, RICH, OPERATOR = "worker-default", "worker-rich", "operator"
EVERYBODY = (SUBMITTER, ADMIN, DELETER, GATEWAY, WORKER, RICH, OPERATOR)
DELETES = (DELETER, OPERATOR)
"""May delete jobs by a right of the role."""

PEOPLE = {SUBMITTER: (SUBMITTER,), ADMIN: (ADMIN,), DELETER: (ADMIN, DELETER)}
"""The roles that the chart makes for people; the others have accounts of their own.

Who deletes has both, as Kubernetes' own `admin` has: so the other tables are tried with the most
that anybody has.
"""

GONE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}
BY_ANYONE = {"create a job that is not tracked", "have it expire at once"}
"""Refused whoever asks, so by some as a mistake (422) and not for who they are (403)."""

NOTHING = {"maxAgeSeconds": 0, "minAgeSeconds": 0, "maxFinished": 0}
KEPT = {"finalizers": ["example.org/kept"]}


def on_finished(**metadata: Any) -> Attempt:
    """Return a change of a finished job's metadata."""
    return lambda thief, setup: thief.merge(
        setup.life(Phase.SUCCEEDED).path, {"metadata": metadata}
    )


def reported(time: str | None) -> Attempt:
    """Return a change of the time of the last report; None: there was none."""

    def attempt(thief: Client, setup: StolenTokenSetup) -> Answer:
        life = setup.life(Phase.SUCCEEDED)
        entries = life.read()["metadata"]["managedFields"]
        told = [
            {**entry, "time": time} if entry.get("subresource") else entry
            for entry in entries
            if time or not entry.get("subresource")
        ]
        return thief.merge(life.path, {"metadata": {"labels": {"a": "b"}, "managedFields": told}})

    return attempt


def created(**metadata: Any) -> Attempt:
    """Return the creation of a job with such metadata."""

    def attempt(thief: Client, setup: StolenTokenSetup) -> Answer:
        body = job()
        body["metadata"] = {"generateName": "theft-", **metadata}
        return thief.create(collection_path(HOME, JOBS), body)

    return attempt


def claimed(thief: Worker, setup: StolenTokenSetup, *, pod: str = "", uid: str = "") -> Answer:
    """Claim a job in the thief's own name, or in another's."""
    life = setup.life()
    body = claim_of(life.read(), pod or thief.pod, uid or thief.pod_uid)
    return thief.client.merge(life.status_path, body)


def renewed(thief: Client, setup: StolenTokenSetup) -> Answer:
    """Renew the lease of a job that another worker runs."""
    body = {"status": {"lease": {"renewals": 1, "renewTime": at(20)}}}
    return thief.merge(setup.life(Phase.RUNNING).status_path, body)


REMOVES: dict[str, Attempt] = {
    "delete it": lambda thief, setup: thief.delete(setup.life(Phase.SUCCEEDED).path),
    "delete all of them": lambda thief, _: thief.delete(collection_path(HOME, JOBS)),
    "have it expire at once": lambda thief, setup: thief.merge(
        setup.life(Phase.SUCCEEDED).path, {"spec": {"ttlSecondsAfterFinished": 0}}
    ),
    "have the garbage collector delete it": on_finished(ownerReferences=[GONE]),
    "have it count as a run of a cron job": on_finished(labels={CRON_JOB_UID_LABEL: "a-uid"}),
    "create runs that push a cron job's own out": created(labels={CRON_JOB_UID_LABEL: "a-uid"}),
    "have its end lie in the past": reported("2020-01-01T00:00:00Z"),
    "have its end be unknown": reported(None),
    "create a queue that keeps nothing": lambda thief, _: thief.create(
        collection_path(HOME, QUEUES), queue("theft", retention=NOTHING)
    ),
    "have a queue keep nothing": lambda thief, setup: thief.merge(
        setup.queue(), {"spec": {"retention": NOTHING}}
    ),
    "delete a queue that keeps them longer": lambda thief, setup: thief.delete(setup.queue()),
    "have a queue deleted by the garbage collector": lambda thief, setup: thief.merge(
        setup.queue(), {"metadata": {"ownerReferences": [GONE]}}
    ),
    "have a cron job keep no success": lambda thief, setup: thief.merge(
        setup.cron_job(), {"spec": {"successfulJobsHistoryLimit": 0}}
    ),
    "have a cron job keep no failure": lambda thief, setup: thief.merge(
        setup.cron_job(), {"spec": {"failedJobsHistoryLimit": 0}}
    ),
}
"""A finished job goes before retention would have it."""

KEEPS: dict[str, Attempt] = {
    "put a finalizer on a finished job": on_finished(**KEPT),
    "create a job with a finalizer": created(**KEPT),
    "put a finalizer on a queue": lambda thief, setup: thief.merge(
        setup.queue(), {"metadata": KEPT}
    ),
    "put a finalizer on a cron job": lambda thief, setup: thief.merge(
        setup.cron_job(), {"metadata": KEPT}
    ),
    "have its end lie in the future": reported("9999-01-01T00:00:00Z"),
    "have its end lie where no calendar reaches": reported("0000-01-01T00:00:00Z"),
}
"""A finished job stays beyond retention."""

ENDS: dict[str, Attempt] = {
    "have a running job succeed": lambda thief, setup: setup.life(Phase.RUNNING).move(
        succeeded, thief
    ),
    "renew another's lease": renewed,
    "write another's progress": lambda thief, setup: thief.merge(
        setup.life(Phase.RUNNING).status_path, {"status": {"progress": {"percent": 99}}}
    ),
    "write another's checkpoint": lambda thief, setup: thief.merge(
        setup.life(Phase.RUNNING).status_path, {"status": {"checkpoint": {"row": 9}}}
    ),
    "take a job away and leave it another checkpoint": lambda thief, setup: setup.life(
        Phase.RUNNING
    ).move(crashed, thief, checkpoint={"row": 9}),
}

OUTSIDE: dict[str, Attempt] = {
    "see its jobs": lambda thief, _: thief.get(collection_path(ELSEWHERE, JOBS)),
    "create a job there": lambda thief, _: thief.create(collection_path(ELSEWHERE, JOBS), job()),
    "delete all its jobs": lambda thief, _: thief.delete(collection_path(ELSEWHERE, JOBS)),
    "pause a queue there": lambda thief, _: thief.merge(
        queue_path(ELSEWHERE, "any"), {"spec": {"paused": True}}
    ),
    "trigger a cron job there": lambda thief, _: thief.merge(
        f"{collection_path(ELSEWHERE, CRON_JOBS)}/any", {"spec": {"trigger": 1}}
    ),
}

TABLE: list[tuple[str, str, Attempt]] = [
    *((who, what, how) for what, how in REMOVES.items() for who in EVERYBODY if who not in DELETES),
    *((who, what, how) for what, how in KEEPS.items() for who in EVERYBODY),
    *((who, what, how) for what, how in ENDS.items() for who in EVERYBODY),
    *((who, what, how) for what, how in OUTSIDE.items() for who in EVERYBODY),
]


@pytest.fixture(scope="module")
def thieves(setup: StolenTokenSetup) -> dict[str, Worker]:
    """Return a token that is bound to a pod of its own for each role."""
    found = {}
    for role in EVERYBODY:
        account = f"asyncjob-{role}"
        if role in PEOPLE:
            account = f"table-{role}"
            setup.space.account(account)
            for part in PEOPLE[role]:
                setup.space.bind(account, f"asyncjob-{part}", called=f"{account}-{part}")
        found[role] = setup.pod(account)
    return found


@pytest.mark.parametrize(("who", "what", "how"), TABLE, ids=[f"{a}: {b}" for a, b, _ in TABLE])
def test_nobodys_token_is_good_for_that(
    setup: StolenTokenSetup, thieves: dict[str, Worker], who: str, what: str, how: Attempt
) -> None:
    answer = how(thieves[who].client, setup)

    mistaken = what in BY_ANYONE and answer.status == 422
    assert answer.status == 403 or mistaken, f"{answer.status}: {answer.message}"


@pytest.mark.parametrize("who", sorted({*EVERYBODY} - {WORKER, RICH}))
def test_only_a_worker_claims_be_it_in_the_name_of_its_own_pod(
    setup: StolenTokenSetup, thieves: dict[str, Worker], who: str
) -> None:
    answer = claimed(thieves[who], setup)

    assert answer.status == 403, answer.message


@pytest.mark.parametrize("who", EVERYBODY)
def test_nobody_claims_in_anothers_name(
    setup: StolenTokenSetup, thieves: dict[str, Worker], who: str
) -> None:
    busy = setup.worker

    answer = claimed(thieves[who], setup, pod=busy.pod, uid=busy.pod_uid)

    assert answer.status == 403, answer.message


def test_each_token_is_good_for_what_its_role_is_there_for(
    setup: StolenTokenSetup, thieves: dict[str, Worker]
) -> None:
    """So it is not for want of any right that the tokens of the table are refused."""
    for who in (WORKER, RICH):
        assert claimed(thieves[who], setup).accepted
    asks: dict[str, Callable[[Client], Answer]] = {
        SUBMITTER: lambda client: created()(client, setup),
        GATEWAY: lambda client: client.create(
            collection_path(HOME, QUEUES), queue("paused", paused=True)
        ),
        ADMIN: lambda client: client.merge(setup.life().path, {"spec": {"cancel": True}}),
        DELETER: lambda client: REMOVES["delete it"](client, setup),
        OPERATOR: lambda client: REMOVES["delete it"](client, setup),
    }
    for who, ask in asks.items():
        assert ask(thieves[who].client).accepted, who
