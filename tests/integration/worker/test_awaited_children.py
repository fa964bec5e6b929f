"""Handlers that wait for child jobs, with a worker, an operator and a real API server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.processes.operator import own_operator
from support.processes.probes import Probes
from support.processes.workers import WorkerNamespace, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

APP = "support.apps.stepped:app"
KINDS = ["family", "family-sync", "family-isolated"]


@pytest.fixture(scope="module")
def woken(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerNamespace]:
    folder = tmp_path_factory.mktemp("children")
    with (
        worker_namespace(control_plane, folder) as prepared,
        own_operator(prepared),
    ):
        prepared.worker("worker-0", "--concurrency=4", app=APP)
        yield prepared


def until_parked(ns: WorkerNamespace, name: str) -> Any:
    return ns.until_status(name, lambda status: "waiting" in status)


def children_of(status: Any) -> list[Any]:
    return [child for wait in status["waiting"] for child in wait["children"]]


@pytest.mark.parametrize("type_", KINDS)
def test_a_parent_waits_without_a_slot_until_all_its_children_have_ended(
    woken: WorkerNamespace, type_: str
) -> None:
    name = f"parent-{type_}"
    woken.create(name, type_, [0, 6, -6], retryPolicy={"maxRetries": 0})
    parked = until_parked(woken, name)
    assert (parked["phase"], parked["reason"]) == ("Pending", "WaitingForChildren")
    assert not {"lease", "waits", "history"} & {*parked}
    for child in children_of(parked):
        assert woken.get(child["name"])["metadata"]["uid"] == child["uid"]
    woken.patch(children_of(parked)[-1]["name"], {"spec": {"cancel": True}})
    status = woken.until_phase(name, "Succeeded", within=60)
    assert status["result"] == [0, 6, "CancelRequested"]
    assert (status.get("retries", 0), status.get("crashes", 0)) == (0, 0)
    assert status["attempt"] == status.get("parks", 0) + 1
    assert "waiting" not in status
    assert [entry["phase"] for entry in status["history"]] == ["Succeeded"]
    assert len(woken.trace(f"first {name}")) == len(woken.trace(f"second {name}")) == 1


def test_a_wait_with_a_limit_is_over_by_time(woken: WorkerNamespace) -> None:
    woken.create("impatient", "impatient", 6)
    parked = until_parked(woken, "impatient")
    (wait,) = parked["waiting"]
    assert parked["waits"][wait["key"]]["until"] == wait["until"]
    status = woken.until_phase("impatient", "Succeeded", within=30)
    assert status["result"] == "child <child> has not finished within 6.0 s"
    assert status["waits"][wait["key"]]["over"] is True


def test_a_deleted_child_wakes_its_parent(woken: WorkerNamespace) -> None:
    woken.create("bereft", "family", [600])
    (child,) = children_of(until_parked(woken, "bereft"))
    path = f"/apis/asyncjob.dev/v1alpha1/namespaces/{woken.namespace}/asyncjobs/{child['name']}"
    woken.api.delete(path)
    again = woken.until_status("bereft", lambda status: status.get("parks", 0) == 2)
    (new,) = children_of(again)
    assert (new["name"], new["uid"] == child["uid"]) == (child["name"], False)
    woken.patch("bereft", {"spec": {"cancel": True, "cancelCascade": True}})
    woken.until_phase("bereft", "Cancelled", within=30)
    woken.until_phase(new["name"], "Cancelled", within=30)


def test_a_suspended_parent_is_held_and_goes_on_once_it_is_resumed(woken: WorkerNamespace) -> None:
    woken.create("held", "family", [5])
    until_parked(woken, "held")
    woken.patch("held", {"spec": {"suspend": True}})
    woken.until_status("held", lambda status: status.get("reason") == "Suspended")
    woken.patch("held", {"spec": {"suspend": False}})
    assert woken.until_phase("held", "Succeeded", within=30)["result"] == [5]


def test_a_deadline_ends_a_parent_that_waits_and_no_child_of_it(woken: WorkerNamespace) -> None:
    woken.create("late", "family", [600], deadlineSeconds=7)
    (child,) = children_of(until_parked(woken, "late"))
    status = woken.until_phase("late", "Cancelled", within=30)
    assert (status["reason"], "waiting" in status) == ("DeadlineExceeded", False)
    assert woken.status(child["name"])["phase"] not in {"Cancelled", "DeadLetter"}
    woken.cancel(child["name"])
    woken.until_phase(child["name"], "Cancelled", within=30)


def test_a_child_that_becomes_a_dead_letter_wakes_its_parent(woken: WorkerNamespace) -> None:
    woken.create("twice", "family", [-4])
    (child,) = children_of(until_parked(woken, "twice"))
    status = woken.until_phase("twice", "Succeeded", within=30)
    ended = woken.status(child["name"])
    assert ended["phase"] == "DeadLetter"
    assert status["result"] == [ended["reason"]]


def requests(probes: Probes, method: str) -> float:
    """Return how often a worker has asked the API server so far."""
    return probes.metrics().total("asyncjob_worker_api_requests_total", method=method)


def test_a_parent_that_runs_again_finds_its_children_by_one_list(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns, own_operator(ns):
        ns.queue("leaves")
        probes = Probes.on_free_port()
        ns.worker("parents", "--queue=default", "--concurrency=2", probes.option, app=APP)
        ns.worker("children", "--queue=leaves", "--concurrency=4", app=APP)
        seen = requests(probes, "GET")
        ns.create("parent", "family-elsewhere", [4.0] * 20)
        status = ns.until_phase("parent", "Succeeded", within=60)
        assert (status.get("parks", 0), status["result"]) == (1, [4.0] * 20)
        # A second request for each child, or one for each end, would be twenty more.
        assert requests(probes, "POST") < 30
        assert requests(probes, "GET") - seen < 20


def test_a_worker_that_drains_before_its_parent_parks_gives_it_up(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns, own_operator(ns):
        first = ns.worker("worker-0", "--concurrency=1", app=APP)
        ns.create("parent", "family", [1.0])
        ns.until_trace("first parent 1")
        first.terminate()
        first.wait_ended(20)
        assert ns.status("parent")["phase"] != "Running"
        ns.worker("worker-1", "--concurrency=1", app=APP)
        status = ns.until_phase("parent", "Succeeded", within=60)
        assert (status["result"], status.get("retries", 0), status.get("crashes", 0)) == (
            [1.0],
            0,
            0,
        )
        assert len(ns.trace("leaf")) == len(ns.trace("first")) == 1


def test_a_worker_that_is_told_never_to_park_holds_the_slot(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns, own_operator(ns):
        ns.worker("worker-0", "--concurrency=2", "--park=never", app=APP)
        ns.create("holds", "family", [5])
        status = ns.until_phase("holds", "Succeeded", within=40)
        assert (status.get("parks", 0), status["attempt"], status["result"]) == (0, 1, [5])


def test_worker_and_operator_are_killed_while_parents_wait(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns:
        with own_operator(ns) as operator:
            worker = ns.worker("worker-0", "--concurrency=2", app=APP)
            for number in range(3):
                ns.create(f"parent-{number}", "family", [4, 4])
            until_parked(ns, "parent-0")
            operator.kill()
            worker.kill()
        with own_operator(ns):
            ns.worker("worker-1", "--concurrency=2", app=APP)
            for number in range(3):
                status = ns.until_phase(f"parent-{number}", "Succeeded", within=150)
                assert status["result"] == [4, 4]


def test_forty_parents_with_ten_children_each_on_four_slots_all_end(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with (
        worker_namespace(control_plane, tmp_path) as ns,
        own_operator(ns),
    ):
        names = [f"parent-{number:02}" for number in range(40)]
        for name in names:
            ns.create(name, "family", [0.01] * 10)
        ns.worker("worker-0", "--concurrency=4", app=APP)
        for name in names:
            status = ns.until_phase(name, "Succeeded", within=200)
            assert status["result"] == [0.01] * 10
        ended = [one for one in ns.jobs() if one["status"]["phase"] == "Succeeded"]
        assert any(ns.status(name).get("parks", 0) for name in names)
        assert len(ended) == 40 + 400
        assert len(ns.trace("leaf")) == 400


def test_without_a_leader_that_wakes_the_slot_is_held(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns:
        ns.worker("worker-0", "--concurrency=2", app=APP)
        ns.create("holds", "family", [4])
        status = ns.until_phase("holds", "Succeeded", within=40)
        assert (status.get("parks", 0), status["attempt"], status["result"]) == (0, 1, [4])
