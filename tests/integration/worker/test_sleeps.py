"""Handlers that sleep without a slot, with a worker, an operator and a real API server."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncjob_dev.controlplane import ControlPlane
from support.processes.operator import own_operator
from support.processes.workers import WorkerNamespace, worker_namespace

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

APP = "support.apps.stepped:app"
SLEEP = 4


@pytest.fixture
def woken(control_plane: ControlPlane, tmp_path: Path) -> Iterator[WorkerNamespace]:
    """Prepare a namespace with an operator for it alone, whose Lease lies there too."""
    with worker_namespace(control_plane, tmp_path) as prepared, own_operator(prepared):
        yield prepared


def test_three_steps_and_a_sleep_are_nine_writes(woken: WorkerNamespace) -> None:
    woken.worker("worker-0", app=APP)
    woken.create("warm-up", "many", {"steps": 0, "size": 1})
    woken.until_phase("warm-up", "Succeeded")
    before = woken.writes()
    woken.create("nine", "sleeping", SLEEP)
    parked = woken.until_phase("nine", "Scheduled")
    assert parked["reason"] == "Sleeping"
    assert "lease" not in parked
    assert [one["key"] for one in parked["waiting"]] == ["nap"]
    assert parked["waits"]["nap"] == {"kind": "Sleep", "until": parked["waiting"][0]["until"]}
    status = woken.until_phase("nine", "Succeeded", within=30)
    # create, claim, two steps, park, promote, claim, a step, complete
    assert woken.writes() - before == Counter({"POST  201": 1, "PATCH status 200": 8})
    assert (status.get("parks", 0), status["attempt"], status.get("retries", 0)) == (1, 2, 0)
    assert status["result"] == 1
    assert "waiting" not in status
    assert status["waits"]["nap"]["over"] is True
    assert [entry["phase"] for entry in status["history"]] == ["Succeeded"]
    assert woken.trace() == ["first nine 1", "second nine 1", "third nine 1"]


@pytest.mark.parametrize("type_", ["sleeping-sync", "sleeping-isolated"])
def test_plain_functions_sleep_in_a_thread_and_in_a_process(
    woken: WorkerNamespace, type_: str
) -> None:
    woken.worker("worker-0", app=APP)
    woken.create("nap", type_, SLEEP)
    woken.until_phase("nap", "Scheduled")
    status = woken.until_phase("nap", "Succeeded", within=30)
    assert (status.get("parks", 0), status["result"]) == (1, 1)
    assert woken.trace() == ["first nap 1", "second nap 1"]


def test_a_parked_job_is_cancelled_where_it_stands(woken: WorkerNamespace) -> None:
    woken.worker("worker-0", app=APP)
    woken.create("long", "sleeping", 3600)
    woken.until_phase("long", "Scheduled")
    woken.cancel("long")
    status = woken.until_phase("long", "Cancelled")
    assert "waiting" not in status
    assert [entry["phase"] for entry in status["history"]] == ["Cancelled"]


def test_a_job_that_is_suspended_meanwhile_goes_on_once_it_is_resumed(
    woken: WorkerNamespace,
) -> None:
    woken.worker("worker-0", app=APP)
    woken.create("held", "sleeping", SLEEP)
    woken.until_phase("held", "Scheduled")
    woken.patch("held", {"spec": {"suspend": True}})
    assert woken.until_phase("held", "Pending", within=30)["reason"] == "Suspended"
    woken.patch("held", {"spec": {"suspend": False}})
    assert woken.until_phase("held", "Succeeded", within=30)["result"] == 1


def test_without_a_leader_that_wakes_the_slot_is_held_and_the_end_is_kept(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    with worker_namespace(control_plane, tmp_path) as ns:
        ns.worker("worker-0", app=APP)
        ns.create("held", "sleeping", SLEEP)
        running = ns.until_status("held", lambda status: "nap" in status.get("waits", {}))
        assert running["phase"] == "Running"
        status = ns.until_phase("held", "Succeeded", within=30)
        assert (status.get("parks", 0), status["attempt"]) == (0, 1)
