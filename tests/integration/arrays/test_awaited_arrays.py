"""Handlers that wait for arrays, with a worker, an operator and a real API server."""

from collections.abc import Iterator
from typing import Any

import pytest

from asyncjob.names import ARRAYS, PARENT_LABEL, array_path, collection_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.supervisor import DevWorker
from support.driven.arrays import Arrays
from support.processes.operator import own_operator
from support.processes.workers import WorkerNamespace, is_gone, until, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

KINDS = ["album", "album-sync", "album-isolated"]


@pytest.fixture(scope="module")
def shared(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerNamespace]:
    folder = tmp_path_factory.mktemp("awaited-arrays")
    with worker_namespace(plane, folder) as prepared, own_operator(prepared):
        yield prepared


@pytest.fixture(scope="module")
def worker(shared: WorkerNamespace) -> DevWorker:
    return Arrays(shared).worker("worker-0", "--concurrency=4", restart=True)


@pytest.fixture
def arrays(shared: WorkerNamespace, worker: DevWorker) -> Arrays:
    """Close the gate: items of `gated` wait for it."""
    for name in ("gate", "failing"):
        (shared.folder / name).unlink(missing_ok=True)
    return Arrays(shared)


def album(
    ns: WorkerNamespace, name: str, handler: str = "album", *, of: str = "gated", **options: Any
) -> None:
    """Create a job of the handler that submits an array of items of another, and waits for it."""
    given = {"type_": of, "items": 40, "chunk_size": 10, "parallelism": 2, **options}
    ns.create(name, handler, given, retryPolicy={"maxRetries": 0})


def array_of(ns: WorkerNamespace, name: str) -> Any:
    """Return the one array that a job has submitted."""
    selector = f"{PARENT_LABEL}={ns.get(name)['metadata']['uid']}"
    path = collection_path(ns.namespace, ARRAYS)
    [found] = ns.api.get(path, labelSelector=selector)["items"]
    return found


def until_parked(ns: WorkerNamespace, name: str) -> Any:
    return ns.until_status(name, lambda status: "waiting" in status, within=60)


@pytest.mark.parametrize("type_", KINDS)
def test_a_job_waits_without_a_slot_until_its_array_has_ended(arrays: Arrays, type_: str) -> None:
    ns = arrays.ns
    album(ns, type_, type_)
    parked = until_parked(ns, type_)
    assert (parked["phase"], parked["reason"]) == ("Pending", "WaitingForChildren")
    assert not {"lease", "waits"} & {*parked}
    meta = array_of(ns, type_)["metadata"]
    awaited = {"name": meta["name"], "uid": meta["uid"], "kind": "AsyncArray"}
    assert awaited in [child for wait in parked["waiting"] for child in wait["children"]]
    ns.open("gate")
    status = ns.until_phase(type_, "Succeeded", within=90)
    assert status["result"] == ["Succeeded", True, [40, 40, 0, ""]]
    assert (status.get("retries", 0), status.get("crashes", 0)) == (0, 0)
    assert "waiting" not in status
    assert set(arrays.runs(meta["name"]).values()) == {1}
    assert array_of(ns, type_)["metadata"]["uid"] == meta["uid"]
    assert len(ns.trace(f"album {type_} ")) == status["attempt"] == status.get("parks", 0) + 1


def test_an_array_that_is_deleted_meanwhile_is_submitted_again(arrays: Arrays) -> None:
    ns = arrays.ns
    album(ns, "bereft", items=8, chunk_size=4)
    until_parked(ns, "bereft")
    gone = array_of(ns, "bereft")["metadata"]
    arrays.delete(gone["name"])
    ns.until_status("bereft", lambda status: status.get("parks", 0) >= 2, within=60)
    again = array_of(ns, "bereft")["metadata"]
    assert again["name"] == gone["name"]
    assert again["uid"] != gone["uid"]
    ns.open("gate")
    status = ns.until_phase("bereft", "Succeeded", within=60)
    assert status["result"] == ["Succeeded", True, [8, 8, 0, ""]]


def test_an_array_that_fails_is_told_with_its_items(arrays: Arrays) -> None:
    ns = arrays.ns
    (ns.folder / "failing").write_text("1 4 5")
    album(ns, "failed", items=list(range(8)), of="picky", item_retries=0)
    status = ns.until_phase("failed", "Succeeded", within=60)
    assert status["result"] == ["Failed", True, [8, 5, 3, "1,4-5"]]


def test_an_array_is_cancelled_with_the_job_that_waits_for_it(arrays: Arrays) -> None:
    ns = arrays.ns
    album(ns, "cancelled")
    until_parked(ns, "cancelled")
    name = array_of(ns, "cancelled")["metadata"]["name"]
    ns.patch("cancelled", {"spec": {"cancel": True, "cancelCascade": True}})
    ns.until_phase("cancelled", "Cancelled")
    arrays.until_phase(name, "Cancelled")
    arrays.until_no_chunks()


def test_a_job_that_is_cancelled_alone_leaves_its_array_to_itself(arrays: Arrays) -> None:
    ns = arrays.ns
    album(ns, "alone", ttl=0)
    until_parked(ns, "alone")
    path = array_path(ns.namespace, array_of(ns, "alone")["metadata"]["name"])
    ns.cancel("alone")
    ns.until_phase("alone", "Cancelled")
    assert ns.api.get(path)["status"]["phase"] == "Running"
    ns.open("gate")
    until(lambda: is_gone(ns.api, path), 90.0, lambda: str(ns.api.get(path)))


def test_a_worker_that_is_killed_meanwhile_loses_nothing(arrays: Arrays, worker: DevWorker) -> None:
    ns = arrays.ns
    album(ns, "killed")
    until_parked(ns, "killed")
    worker.process.kill()
    ns.open("gate")
    status = ns.until_phase("killed", "Succeeded", within=120)
    assert status["result"] == ["Succeeded", True, [40, 40, 0, ""]]
    assert status.get("crashes", 0) == 0
