"""Child jobs on a real API server: once however often the parent runs, and never a silent loss."""

import json
from typing import Any

import pytest

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import JOBS, PARENT_LABEL, PARENT_NAME_ANNOTATION, collection
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
    assert "there is a job taken that is no child of this one" in status["message"]
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


def succeeded(field: Field) -> int:
    """Return how many jobs have succeeded, read as a table: the jobs are large."""
    selector = f"--field-selector=status.phase={Phase.SUCCEEDED}"
    told = field.plane.kubectl("get", "aj", "-n", field.namespace, selector, "--no-headers")
    return len(told.stdout.splitlines())


@pytest.mark.timeout(400)
def test_a_parent_that_waits_among_large_children_stays_small_and_holds_no_loop(
    field: Field,
) -> None:
    """250 finished ones with results of 200 KiB, and as many unfinished with such payloads."""
    rows = [{"row": number, "name": f"customer {number}"} for number in range(5300)]
    assert 190 < len(json.dumps(rows)) / 1024 < 256
    probes = Probes.on_free_port()
    parents = ("--queue=parents", "--concurrency=1", probes.option)
    field.worker("parents", *parents, app="support.worker_app:app")
    field.worker("children", "--concurrency=4", app="support.worker_app:app")
    parent = field.create("p", "among-many", "go", queue="parents")
    field.until_trace("waiting p 1")
    labels = {PARENT_LABEL: parent["metadata"]["uid"]}
    for number in range(250):
        for what, more in (("done", {}), ("open", {"suspend": True})):
            body = {
                "apiVersion": "asyncjob.dev/v1alpha1",
                "kind": "AsyncJob",
                "metadata": {"name": f"{what}-{number}", "labels": labels},
                "spec": {"type": "echo", "payload": rows, **more},
            }
            field.api.create(collection(field.namespace, JOBS), body)
    until(lambda: succeeded(field) == 250, 180, lambda: f"{succeeded(field)} have succeeded")
    seen = gets(probes)
    until(lambda: gets(probes) >= seen + 3, 60, lambda: probes.ask("/metrics")[1])
    field.open("go")
    result = field.until_phase("p", "Succeeded", within=30)["result"]
    assert result["phases"] == ["Succeeded", "Succeeded"]
    assert result["peakMiB"] < 300
    assert result["longest"] < 0.1
