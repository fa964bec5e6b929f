"""What the gateway's token is good for in the wrong hands, and what not."""

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, JOBS, QUEUES, WORKER_LEASE_PREFIX, collection_path
from support.cluster.api import Client
from support.driven.lives import succeeded
from support.objects.builders import at, claim_of, cron_job, job, queue
from support.tenants.stolen import (
    ANYONE,
    CORE,
    HOME,
    LEASES,
    StolenTokenSetup,
    Theft,
    refused,
    theft,
)

pytestmark = pytest.mark.integration

ACCOUNT = "asyncjob-gateway"
GONE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}

THEFTS = (
    *ANYONE,
    theft("delete a job", lambda thief, setup: thief.delete(setup.life().path)),
    theft("delete all jobs", lambda thief, _: thief.delete(collection_path(HOME, JOBS))),
    theft(
        "have a job deleted by the garbage collector",
        lambda thief, setup: thief.merge(
            setup.life().path, {"metadata": {"ownerReferences": [GONE]}}
        ),
    ),
    theft(
        "have a queue deleted by the garbage collector",
        lambda thief, setup: thief.merge(setup.queue(), {"metadata": {"ownerReferences": [GONE]}}),
    ),
    theft(
        "keep a job forever",
        lambda thief, setup: thief.merge(
            setup.life().path, {"metadata": {"finalizers": ["example.org/kept"]}}
        ),
    ),
    theft(
        "end a running job",
        lambda thief, setup: setup.life(Phase.RUNNING).move(succeeded, thief),
    ),
    theft(
        "claim a job in a worker's name",
        lambda thief, setup: thief.merge(
            (life := setup.life()).status_path,
            claim_of(life.read(), setup.worker.pod, setup.worker.pod_uid),
        ),
    ),
    theft(
        "act as the operator",
        lambda thief, setup: thief.merge(setup.life().status_path, {"status": {"admitted": True}}),
    ),
    theft("delete a queue", lambda thief, setup: thief.delete(setup.queue())),
    theft(
        "create a cron job",
        lambda thief, _: thief.create(collection_path(HOME, CRON_JOBS), cron_job("theft")),
    ),
    theft(
        "change a queue's limits",
        lambda thief, setup: thief.merge(setup.queue(), {"spec": {"maxConcurrency": 1}}),
    ),
    theft(
        "create a queue with limits",
        lambda thief, _: thief.create(
            collection_path(HOME, QUEUES), queue("theft", maxConcurrency=1)
        ),
    ),
    theft(
        "change what a cron job does",
        lambda thief, setup: thief.merge(
            setup.cron_job(), {"spec": {"jobTemplate": {"spec": {"type": "other"}}}}
        ),
    ),
    theft("delete a cron job", lambda thief, setup: thief.delete(setup.cron_job())),
    theft("see pods", lambda thief, _: thief.get(f"{CORE}/pods")),
    theft(
        "announce itself as a worker",
        lambda thief, _: thief.create(LEASES, {"metadata": {"name": f"{WORKER_LEASE_PREFIX}x"}}),
    ),
    theft(
        "lead the operators",
        lambda thief, _: thief.create(LEASES, {"metadata": {"name": "asyncjob-operator"}}),
    ),
)


@pytest.fixture(scope="module")
def thief(setup: StolenTokenSetup) -> Client:
    return setup.pod(ACCOUNT).client


@pytest.mark.parametrize("tried", THEFTS, ids=str)
def test_it_cannot(setup: StolenTokenSetup, thief: Client, tried: Theft) -> None:
    assert refused(tried.attempt(thief, setup))


def test_it_cannot_change_what_a_job_does_or_bring_a_finished_one_back(
    setup: StolenTokenSetup, thief: Client
) -> None:
    for phase, change, rule in (
        (Phase.QUEUED, {"type": "other"}, "spec.fixed.type"),
        (Phase.QUEUED, {"payload": {"a": 1}}, "spec.fixed.payload"),
        (Phase.SUCCEEDED, {"redrive": 1}, "control.redrive-dead-letter"),
        (Phase.SUCCEEDED, {"cancel": True}, "control.cancel-too-late"),
    ):
        assert rule in thief.merge(setup.life(phase).path, {"spec": change}).message


def test_it_submits_and_cancels_any_job_reads_all_and_pauses_queues(
    setup: StolenTokenSetup, thief: Client
) -> None:
    life = setup.life(payload={"iban": "DE02"})
    assert thief.get(life.path).object()["spec"]["payload"] == {"iban": "DE02"}
    assert thief.merge(life.path, {"spec": {"cancel": True}}).accepted
    assert thief.merge(setup.queue(), {"spec": {"paused": True}}).accepted
    controls = {"trigger": 1, "suspend": True, "backfill": {"from": at(), "to": at(60)}}
    assert thief.merge(setup.cron_job(), {"spec": controls}).accepted


def test_it_has_handlers_read_any_secret_that_their_worker_may_read(
    setup: StolenTokenSetup, thief: Client
) -> None:
    """The price of `vouch`: what the handler does with it is all that is left to a thief."""
    source = {"secretKeyRef": {"name": "orders", "key": "payload"}}
    assert thief.create(collection_path(HOME, JOBS), job("vouched", payloadFrom=source)).accepted
    assert refused(thief.get(f"{CORE}/secrets/orders"))


def test_it_sends_signals_in_anyones_name_and_changes_none(
    setup: StolenTokenSetup, thief: Client
) -> None:
    """The price of `vouch`, too."""
    life = setup.life()
    approved = {"spec": {"signals": {"approval": {"payload": True, "sentBy": "ada"}}}}
    assert thief.merge(life.path, approved).accepted
    denied = {"spec": {"signals": {"approval": {"payload": False, "sentBy": "ada"}}}}
    assert "signal.once" in thief.merge(life.path, denied).message
    assert "signal.once" in thief.merge(life.path, {"spec": {"signals": None}}).message


def test_it_learns_what_anyone_may_do(thief: Client) -> None:
    who = {"user": "ada", "resourceAttributes": {"verb": "get", "resource": "secrets"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": who}
    answer = thief.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert answer.object()["status"]["allowed"] is False
