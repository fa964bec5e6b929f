"""Child jobs on a real API server: once however often the parent runs, and never a silent loss."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from asyncjob.kube import KubeSession, load_access
from asyncjob.names import JOBS, PARENT_LABEL, PARENT_NAME_ANNOTATION, collection_path
from support.builders import at, job
from support.crowd import store, stored
from support.probes import Probes
from support.workers import CHILDREN_ROLE, Field, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

APP = "support.shared_app:app"
TRACE = f"00-{'ab' * 16}-{'cd' * 8}-01"
NO_RETRY: dict[str, Any] = {"retryPolicy": {"maxRetries": 0}}


def children_of(field: Field, name: str) -> list[Any]:
    uid = field.get(name)["metadata"]["uid"]
    return [
        job for job in field.jobs() if job["metadata"].get("labels", {}).get(PARENT_LABEL) == uid
    ]


def test_a_parent_that_runs_again_finds_the_children_it_has(field: Field) -> None:
    field.worker("worker-0", "--concurrency=4", app=APP)
    field.create("p", "fan-out", {"again": True}, traceparent=TRACE, priority=7)
    field.create("s", "fan-out-sync", "leaf")
    field.create("f", "fan-out-sync", "retried")
    status = field.until_phase("p", "Succeeded", within=30)
    assert status["attempt"] == 2
    assert status["result"]["all"] == 4
    assert status["result"]["results"][1] == {"payload": 1, "parent": "p", "trace": "ab" * 16}
    made = children_of(field, "p")
    assert len(made) == 4
    for child in made:
        assert child["metadata"]["annotations"][PARENT_NAME_ANNOTATION] == "p"
        assert "ownerReferences" not in child["metadata"]
        assert (child["spec"]["queue"], child["spec"]["priority"]) == ("default", 7)
    result = field.until_phase("s", "Succeeded")["result"]
    assert (result["phase"], result["error"]) == ("Succeeded", "")
    assert field.until_phase("f", "Succeeded")["result"]["phase"] == "Succeeded"


def test_a_child_that_cannot_be_stored_fails_the_parent_that_did_not_look(field: Field) -> None:
    field.worker("worker-0", app=APP)
    field.create("taken", "leaf", 1)
    field.create("p", "forgetful", {"name": "taken"}, **NO_RETRY)
    status = field.until_phase("p", "DeadLetter")
    assert "there is a job taken that is not a child of this one" in status["message"]
    assert status["error"]["category"] == "Validation"
    field.create("big", "forgetful", {"a": "x" * 1_000_000, "name": "b"}, **NO_RETRY)
    field.until_phase("big", "Succeeded")


def test_a_worker_without_the_right_says_which_role_is_missing(field: Field) -> None:
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{field.namespace}/rolebindings"
    field.api.delete(f"{bindings}/{CHILDREN_ROLE}")
    field.worker("worker-0", app=APP)
    field.create("p", "forgetful", {}, **NO_RETRY)
    status = field.until_phase("p", "DeadLetter")
    assert f"--clusterrole={CHILDREN_ROLE}" in status["message"]
    assert status["error"] == {**status["error"], "category": "Permission"}


def test_a_cancelled_parent_that_waits_in_a_thread_stops_at_once(field: Field) -> None:
    worker = field.worker("worker-0", "--concurrency=2", app=APP)
    field.create("p", "waits-for-child-sync")
    field.until_trace("waiting p 1")
    field.cancel("p")
    field.until_phase("p", "Cancelled", within=5)
    assert "abandoned" not in field.log(worker)
    (child,) = children_of(field, "p")
    field.open("never")
    field.until_phase(child["metadata"]["name"], "Succeeded")


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


def create_unfinished(field: Field, parent_uid: str) -> None:
    """Create children with large payloads that do not start."""
    numbers = iter(range(CHILDREN))

    async def create(session: KubeSession) -> None:
        for number in numbers:
            body = child_job(number, parent_uid, payload=LARGE, suspend=True)
            await session.create(collection_path(field.namespace, JOBS), body)

    async def create_all() -> None:
        access = await load_access(str(field.plane.kubeconfig))
        async with (
            KubeSession(access, field_manager="test") as session,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(4):
                group.create_task(create(session))

    asyncio.run(create_all())


def store_finished(field: Field, parent_uid: str) -> None:
    """Store children that have succeeded with large results."""
    status = {"phase": "Succeeded", "attempt": 1, "completionTime": at(9), "result": LARGE}
    objects = [
        {**stored(field.namespace, child_job(number, parent_uid)), "status": status}
        for number in range(CHILDREN)
    ]
    store(field.plane, JOBS, objects, at_once=4)


@pytest.mark.alone
@pytest.mark.timeout(300)
@pytest.mark.parametrize("add_children", [create_unfinished, store_finished])
def test_a_parent_that_waits_among_large_children_stays_small_and_holds_no_loop(
    field: Field, add_children: Callable[[Field, str], None]
) -> None:
    """One text each, which the API server takes quickly: whole lists would cost 300 MiB as well."""
    probes = Probes.on_free_port()
    parents = ("--queue=parents", "--concurrency=1", probes.option)
    field.worker("parents", *parents, app="support.worker_app:app")
    parent = field.create("p", "among-many", "go", queue="parents")
    field.until_trace("waiting p 1")
    add_children(field, parent["metadata"]["uid"])
    seen = gets(probes)
    until(lambda: gets(probes) >= seen + 3, 60, lambda: probes.ask("/metrics")[1])
    field.open("go")
    field.worker("children", "--concurrency=2", app="support.worker_app:app")
    result = field.until_phase("p", "Succeeded", within=60)["result"]
    assert result["phases"] == ["Succeeded", "Succeeded"]
    assert result["peakMiB"] < 300
    assert 0 < result["longest"] < 0.1
