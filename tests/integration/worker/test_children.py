"""Child jobs on a real API server: once however often the parent runs, and never a silent loss."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from asyncjob.kube import KubeSession, load_access
from asyncjob.names import JOBS, PARENT_LABEL, PARENT_NAME_ANNOTATION, collection_path
from support.driven.crowd import store, stored
from support.objects.builders import at, job
from support.processes.probes import Probes
from support.processes.workers import CHILDREN_ROLE, WorkerNamespace, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

APP = "support.apps.shared:app"
TRACE = f"00-{'ab' * 16}-{'cd' * 8}-01"
NO_RETRY: dict[str, Any] = {"retryPolicy": {"maxRetries": 0}}


def children_of(ns: WorkerNamespace, name: str) -> list[Any]:
    uid = ns.get(name)["metadata"]["uid"]
    return [job for job in ns.jobs() if job["metadata"].get("labels", {}).get(PARENT_LABEL) == uid]


def test_a_parent_that_runs_again_finds_the_children_it_has(ns: WorkerNamespace) -> None:
    ns.worker("worker-0", "--concurrency=4", app=APP)
    ns.create("p", "fan-out", {"again": True}, traceparent=TRACE, priority=7)
    ns.create("s", "fan-out-sync", "leaf")
    ns.create("f", "fan-out-sync", "retried")
    status = ns.until_phase("p", "Succeeded", within=30)
    assert status["attempt"] == 2
    assert status["result"]["all"] == 4
    assert status["result"]["results"][1] == {"payload": 1, "parent": "p", "trace": "ab" * 16}
    made = children_of(ns, "p")
    assert len(made) == 4
    for child in made:
        assert child["metadata"]["annotations"][PARENT_NAME_ANNOTATION] == "p"
        assert "ownerReferences" not in child["metadata"]
        assert (child["spec"]["queue"], child["spec"]["priority"]) == ("default", 7)
    result = ns.until_phase("s", "Succeeded")["result"]
    assert (result["phase"], result["error"]) == ("Succeeded", "")
    assert ns.until_phase("f", "Succeeded")["result"]["phase"] == "Succeeded"


def test_a_child_that_cannot_be_stored_fails_the_parent_that_did_not_look(
    ns: WorkerNamespace,
) -> None:
    ns.worker("worker-0", app=APP)
    ns.create("taken", "leaf", 1)
    ns.create("p", "forgetful", {"name": "taken"}, **NO_RETRY)
    status = ns.until_phase("p", "DeadLetter")
    assert "there is a job taken that is not a child of this one" in status["message"]
    assert status["error"]["category"] == "Validation"
    ns.create("big", "forgetful", {"a": "x" * 1_000_000, "name": "b"}, **NO_RETRY)
    ns.until_phase("big", "Succeeded")


def test_a_worker_without_the_right_says_which_role_is_missing(ns: WorkerNamespace) -> None:
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns.namespace}/rolebindings"
    ns.api.delete(f"{bindings}/{CHILDREN_ROLE}")
    ns.worker("worker-0", app=APP)
    ns.create("p", "forgetful", {}, **NO_RETRY)
    status = ns.until_phase("p", "DeadLetter")
    assert f"--clusterrole={CHILDREN_ROLE}" in status["message"]
    assert status["error"] == {**status["error"], "category": "Permission"}


def test_a_cancelled_parent_that_waits_in_a_thread_stops_at_once(ns: WorkerNamespace) -> None:
    worker = ns.worker("worker-0", "--concurrency=2", app=APP)
    ns.create("p", "waits-for-child-sync")
    ns.until_trace("waiting p 1")
    ns.cancel("p")
    ns.until_phase("p", "Cancelled", within=5)
    assert "abandoned" not in ns.log(worker)
    (child,) = children_of(ns, "p")
    ns.open("never")
    ns.until_phase(child["metadata"]["name"], "Succeeded")


def gets(probes: Probes) -> float:
    """Return how often a worker has read from the API server."""
    lines = probes.ask("/metrics")[1].splitlines()
    name = 'asyncjob_worker_api_requests_total{code="200",method="GET"}'
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


CHILDREN = 500
LARGE = "x" * 200 * 1024


def child_job(number: int, parent_uid: str, **spec: Any) -> dict[str, Any]:
    body = job(f"child-{number}", **spec)
    body["metadata"]["labels"] = {PARENT_LABEL: parent_uid}
    return body


def create_unfinished(ns: WorkerNamespace, parent_uid: str) -> None:
    """Create children with large payloads that do not start."""
    numbers = iter(range(CHILDREN))

    async def create(session: KubeSession) -> None:
        for number in numbers:
            body = child_job(number, parent_uid, payload=LARGE, suspend=True)
            await session.create(collection_path(ns.namespace, JOBS), body)

    async def create_all() -> None:
        access = await load_access(str(ns.plane.kubeconfig))
        async with (
            KubeSession(access, field_manager="test") as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(4):
                group.create_task(create(session))

    asyncio.run(create_all())


def store_finished(ns: WorkerNamespace, parent_uid: str) -> None:
    """Store children that have succeeded with large results."""
    status = {"phase": "Succeeded", "attempt": 1, "completionTime": at(9), "result": LARGE}
    objects = [
        {**stored(ns.namespace, child_job(number, parent_uid)), "status": status}
        for number in range(CHILDREN)
    ]
    store(ns.plane, JOBS, objects, at_once=4)


@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("add_children", [create_unfinished, store_finished])
def test_a_parent_that_waits_among_large_children_stays_small_and_holds_no_loop(
    ns: WorkerNamespace, add_children: Callable[[WorkerNamespace, str], None]
) -> None:
    """One text each, which the API server takes quickly: whole lists would cost 300 MiB as well."""
    probes = Probes.on_free_port()
    parents = ("--queue=parents", "--concurrency=1", probes.option)
    ns.worker("parents", *parents, app="support.apps.worker:app")
    parent = ns.create("p", "among-many", "go", queue="parents")
    ns.until_trace("waiting p 1")
    add_children(ns, parent["metadata"]["uid"])
    seen = gets(probes)
    until(lambda: gets(probes) >= seen + 3, 60, lambda: probes.ask("/metrics")[1])
    ns.open("go")
    ns.worker("children", "--concurrency=2", app="support.apps.worker:app")
    result = ns.until_phase("p", "Succeeded", within=60)["result"]
    assert result["phases"] == ["Succeeded", "Succeeded"]
    assert result["peakMiB"] < 300
    assert 0 < result["longest"] < 0.1
