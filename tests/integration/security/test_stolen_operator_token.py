"""What the operator's token is good for in the wrong hands, and what not."""

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, WORKER_LEASE_PREFIX, collection_path
from support.cluster.api import Client
from support.driven.lives import Decide, failed, given_up, released, succeeded
from support.objects.builders import at, job
from support.rights.probes.operating import ELECTIONS
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

ACCOUNT = "asyncjob-operator"
ELECTION = f"/apis/coordination.k8s.io/v1/namespaces/{ELECTIONS}/leases"

THEFTS = (
    *ANYONE,
    theft("delete a queue", lambda thief, setup: thief.delete(setup.queue())),
    theft(
        "change a queue's limits",
        lambda thief, setup: thief.merge(setup.queue(), {"spec": {"maxConcurrency": 1}}),
    ),
    theft(
        "change a cron job",
        lambda thief, setup: thief.merge(setup.cron_job(), {"spec": {"suspend": True}}),
    ),
    theft("delete a pod", lambda thief, _: thief.delete(f"{CORE}/pods/busy")),
    theft(
        "announce a worker",
        lambda thief, _: thief.create(LEASES, {"metadata": {"name": f"{WORKER_LEASE_PREFIX}x"}}),
    ),
    theft(
        "hold the Lease of some other program where jobs are",
        lambda thief, _: thief.merge(f"{LEASES}/their-controller", {"spec": {}}),
    ),
    theft(
        "hold the Lease of some other program where operators elect their leader",
        lambda thief, _: thief.merge(f"{ELECTION}/their-controller", {"spec": {}}),
    ),
)


@pytest.fixture(scope="module")
def thief(setup: StolenTokenSetup) -> Client:
    return setup.pod(ACCOUNT).client


@pytest.mark.parametrize("tried", THEFTS, ids=str)
def test_it_cannot(setup: StolenTokenSetup, thief: Client, tried: Theft) -> None:
    assert refused(tried.attempt(thief, setup))


def test_it_cannot_break_the_rules_of_a_jobs_life(setup: StolenTokenSetup, thief: Client) -> None:
    forged = {"phase": "Succeeded", "completionTime": at(), "lastTransitionTime": at()}
    for phase, status, rule in (
        (Phase.QUEUED, forged, "transition.pair"),
        (Phase.SUCCEEDED, {"result": {"sum": 4}}, "result.by-success"),
        (Phase.SUCCEEDED, {"message": "forged"}, "finished.frozen"),
        (Phase.RUNNING, {"lease": {"renewals": 7}}, "owner.running"),
    ):
        answer = thief.merge(setup.life(phase).status_path, {"status": status})
        assert not answer.accepted
        assert rule in answer.message, answer.message


@pytest.mark.parametrize(
    "decide", [succeeded, failed, given_up, released], ids=lambda it: it.__name__
)
def test_it_cannot_end_a_running_job_for_a_workers_reasons(
    setup: StolenTokenSetup, thief: Client, decide: Decide
) -> None:
    answer = setup.life(Phase.RUNNING).move(decide, thief)
    assert refused(answer)
    assert "owner.transition" in answer.message


def test_it_writes_and_deletes_any_job_and_has_handlers_read_secrets(
    setup: StolenTokenSetup, thief: Client
) -> None:
    """It is the whole of asyncjob in its namespaces, but no more than that."""
    running = setup.life(Phase.RUNNING)
    assert thief.merge(running.path, {"spec": {"cancel": True}}).accepted
    assert thief.merge(setup.life().status_path, {"status": {"admitted": True}}).accepted
    assert thief.delete(setup.life().path).accepted
    assert thief.get(f"{CORE}/pods").accepted
    source = {"secretKeyRef": {"name": "orders", "key": "payload"}}
    assert thief.create(collection_path(HOME, JOBS), job("operated", payloadFrom=source)).accepted
    assert thief.delete(f"{LEASES}/any").status != 403
