"""What a worker's token is good for in the wrong hands, and what not."""

from functools import partial
from http import HTTPStatus

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, WORKER_LEASE_PREFIX, collection_path, queue_status_path
from support.cluster.api import Client
from support.cluster.enforcement import until
from support.cluster.identities import Worker
from support.driven.lives import succeeded
from support.objects.builders import claim_of, job
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

ACCOUNT = "asyncjob-worker-default"

THEFTS = (
    *ANYONE,
    theft("delete a job", lambda thief, setup: thief.delete(setup.life().path)),
    theft("delete all jobs", lambda thief, _: thief.delete(collection_path(HOME, JOBS))),
    theft("create a job", lambda thief, _: thief.create(collection_path(HOME, JOBS), job())),
    theft(
        "cancel a job",
        lambda thief, setup: thief.merge(setup.life().path, {"spec": {"cancel": True}}),
    ),
    theft(
        "label a job",
        lambda thief, setup: thief.merge(setup.life().path, {"metadata": {"labels": {"a": "b"}}}),
    ),
    theft(
        "end a job that another worker runs",
        lambda thief, setup: setup.life(Phase.RUNNING).move(succeeded, thief),
    ),
    theft(
        "claim a job in another worker's name",
        lambda thief, setup: thief.merge(
            (life := setup.life()).status_path,
            claim_of(life.read(), setup.worker.pod, setup.worker.pod_uid),
        ),
    ),
    theft(
        "admit a job to a queue with limits",
        lambda thief, setup: thief.merge(setup.life().status_path, {"status": {"admitted": True}}),
    ),
    theft(
        "free places in a queue",
        lambda thief, setup: thief.merge(
            queue_status_path(HOME, setup.queue().rpartition("/")[2]), {"status": {}}
        ),
    ),
    theft(
        "pause a queue",
        lambda thief, setup: thief.merge(setup.queue(), {"spec": {"paused": True}}),
    ),
    theft("see a cron job", lambda thief, setup: thief.get(setup.cron_job())),
    theft("see pods", lambda thief, _: thief.get(f"{CORE}/pods")),
    theft(
        "announce itself as another worker",
        lambda thief, _: thief.create(LEASES, {"metadata": {"name": f"{WORKER_LEASE_PREFIX}busy"}}),
    ),
    theft(
        "lead the operators",
        lambda thief, _: thief.create(LEASES, {"metadata": {"name": "asyncjob-operator"}}),
    ),
    theft(
        "hold the Lease of some other program",
        lambda thief, _: thief.create(LEASES, {"metadata": {"name": "their-controller"}}),
    ),
    theft(
        "delete the Lease of a worker",
        lambda thief, _: thief.delete(f"{LEASES}/{WORKER_LEASE_PREFIX}busy"),
    ),
)


@pytest.fixture(scope="module")
def thief(setup: StolenTokenSetup) -> Worker:
    return setup.pod(ACCOUNT)


@pytest.mark.parametrize("tried", THEFTS, ids=str)
def test_it_cannot(setup: StolenTokenSetup, thief: Worker, tried: Theft) -> None:
    assert refused(tried.attempt(thief.client, setup))


def test_it_reads_all_payloads_and_claims_any_job_of_its_namespace(
    setup: StolenTokenSetup, thief: Worker
) -> None:
    """RBAC knows no queues: the namespace is what bounds a worker."""
    life = setup.life(queue="not-its-own", payload={"iban": "DE02"})
    seen = thief.client.get(life.path).object()
    assert seen["spec"]["payload"] == {"iban": "DE02"}
    claim = claim_of(seen, thief.pod, thief.pod_uid)
    assert thief.client.merge(life.status_path, claim).object()["status"]["phase"] == "Running"
    assert life.move(succeeded, thief.client).object()["status"]["result"] == {"sum": 3}


def test_it_ends_with_its_pod_and_is_no_good_to_a_pod_of_the_same_name(
    setup: StolenTokenSetup,
) -> None:
    gone = setup.pod(ACCOUNT)
    life = setup.life()
    claim = claim_of(life.read(), gone.pod, gone.pod_uid)
    gone.client.merge(life.status_path, claim).object()
    unused = setup.space.bound_to(gone, ACCOUNT)
    setup.admin.delete(f"{CORE}/pods/{gone.pod}").object()

    # The API server learns of the end of the pod by a watch, and knows a token that was used before
    # that for ten seconds yet.
    ask = partial(unused.get, life.path)
    until(lambda answer: answer.status == HTTPStatus.UNAUTHORIZED, ask, "the token has ended")
    again = setup.space.worker(gone.pod, ACCOUNT)
    assert refused(life.move(succeeded, again.client))


def test_of_no_pod_it_claims_nothing(setup: StolenTokenSetup) -> None:
    unbound = setup.space.as_account(ACCOUNT)
    life = setup.life()
    answer = unbound.merge(life.status_path, claim_of(life.read(), "busy", setup.worker.pod_uid))
    assert refused(answer)
    assert "this request comes from no pod" in answer.message


def test_of_a_worker_with_payload_sources_and_children_it_has_just_these(
    setup: StolenTokenSetup,
) -> None:
    rich = setup.pod("asyncjob-worker-rich").client
    other = {"metadata": {"name": "other"}, "stringData": {"payload": "1"}}
    setup.admin.create(f"{CORE}/secrets", other).object()

    assert rich.get(f"{CORE}/secrets/orders").accepted
    assert refused(rich.get(f"{CORE}/secrets/other"))
    assert refused(rich.get(f"{CORE}/secrets"))
    assert _submits(rich, "orders")
    assert not _submits(rich, "other")


def _submits(thief: Client, secret: str) -> bool:
    source = {"secretKeyRef": {"name": secret, "key": "payload"}}
    return thief.create(
        collection_path(HOME, JOBS), job(f"theft-{secret}", payloadFrom=source)
    ).accepted
