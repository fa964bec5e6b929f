"""Stopping handlers in processes of their own: asked first, then killed, never abandoned."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from asyncjob.app.context import Stop
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.stall_detector import LivenessCounter
from asyncjob_worker.metrics import Metrics
from support.parts.callbacks import ignore
from support.parts.isolation import IsolatedAttempts, is_alive, is_left, job, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("type_", ["obey", "obey-sync", "obey-blocking"])
async def test_a_handler_that_obeys_has_its_time_and_keeps_its_process(
    attempts: IsolatedAttempts, tmp_path: Path, type_: str
) -> None:
    of = job(type_, str(tmp_path))
    task, pid = await attempts.begin(of, tmp_path)
    of.stop(Stop.DRAINING)
    move = await task
    assert move
    assert (move.target, move.reason) == (Phase.QUEUED, Reason.RELEASED)
    assert (tmp_path / "obeyed").read_text() == "True"
    assert (await attempts.result("look"))["pid"] == pid


async def stopped(of: HeldJob, why: Stop, folder: Path, wait: float = 0.05) -> PhaseChange | None:
    """Start a handler that ignores everything, stop it, and see its process gone."""
    attempts = IsolatedAttempts(stop_grace_seconds=wait)
    try:
        task, pid = await attempts.begin(of, folder)
        of.stop(why)
        async with asyncio.timeout(10):
            move = await task
        assert not is_left(pid)
    finally:
        await attempts.close()
    return move


@pytest.mark.parametrize("type_", ["spin", "deaf"])
async def test_one_that_ignores_its_stop_is_killed_and_its_outcome_is_the_stop(
    tmp_path: Path, type_: str
) -> None:
    move = await stopped(job(type_, str(tmp_path)), Stop.TIMED_OUT, tmp_path)
    assert move
    assert (move.target, move.reason) == (Phase.RETRYING, Reason.EXECUTION_TIMEOUT)
    assert "crashes" not in move.fields


async def test_the_programs_that_it_has_started_are_killed_with_it(tmp_path: Path) -> None:
    await stopped(job("family", str(tmp_path)), Stop.DRAINING, tmp_path)
    grandchild = int((tmp_path / "grandchild").read_text())
    await until(lambda: not is_alive(grandchild), "the grandchild is dead")


async def test_a_fenced_one_is_killed_soon_however_patient_the_worker(tmp_path: Path) -> None:
    assert await stopped(job("spin", str(tmp_path)), Stop.FENCED, tmp_path, wait=1000) is None


async def test_a_fenced_one_is_killed_though_the_event_loop_stands_still(tmp_path: Path) -> None:
    """By the heartbeat thread, which is the one that notices the lost lease."""
    heartbeat, attempts, of = (
        HeartbeatThread(None, "ns", 1.0, LivenessCounter(), metrics=Metrics(), blocking_job=ignore),
        IsolatedAttempts(),
        job("spin", str(tmp_path)),
    )
    task, pid = await attempts.begin(of, tmp_path)
    of.sent_at -= 1000
    heartbeat.add(of)

    def heartbeats() -> None:
        while is_alive(pid):
            heartbeat._tick(lambda _: None)
            time.sleep(0.05)

    thread = threading.Thread(target=heartbeats, daemon=True)
    thread.start()
    thread.join(10)  # in the event loop: it stands still meanwhile
    assert not is_alive(pid)
    assert await task is None
    await attempts.close()


async def test_a_handler_that_is_over_is_never_killed_for_the_next_one_of_its_process(
    attempts: IsolatedAttempts, tmp_path: Path
) -> None:
    of = job("obey", str(tmp_path))
    task, pid = await attempts.begin(of, tmp_path)
    kill = of._kill
    assert kill is not None
    of.stop(Stop.DRAINING)
    await task
    assert not of.can_be_killed
    kill()
    assert (await attempts.result("look"))["pid"] == pid


async def test_a_cancelled_one_that_is_fenced_meanwhile_is_killed_soon(tmp_path: Path) -> None:
    attempts = IsolatedAttempts()
    of = job("spin", str(tmp_path), spec={"cancelGraceSeconds": 1000})
    task, pid = await attempts.begin(of, tmp_path)
    of.stop(Stop.CANCELLED)
    await asyncio.sleep(0)
    of.stop(Stop.FENCED)
    async with asyncio.timeout(10):
        assert await task is None
    assert not is_left(pid)
    await attempts.close()


async def test_the_execution_timeout_ends_it_without_anybodys_help(tmp_path: Path) -> None:
    attempts = IsolatedAttempts(stop_grace_seconds=0.05)
    await attempts.result("look")
    effective = {**BUILT_IN_POLICY.to_json(), "executionTimeoutSeconds": 2}
    of = job("spin", str(tmp_path), effective=effective)
    task, pid = await attempts.begin(of, tmp_path)
    move = await task
    assert move
    assert move.reason is Reason.EXECUTION_TIMEOUT
    assert not is_left(pid)
    await attempts.close()


async def test_one_that_is_stopped_before_its_process_is_ready_never_begins(
    tmp_path: Path,
) -> None:
    attempts = IsolatedAttempts()
    of = job("spin", str(tmp_path))
    task = asyncio.ensure_future(attempts.run(of))
    await asyncio.sleep(0)
    of.stop(Stop.DRAINING)
    move = await task
    assert move
    assert move.reason is Reason.RELEASED
    await attempts.close()
    assert not (tmp_path / "started").exists()


async def test_a_worker_that_ends_kills_what_is_at_work_and_asks_what_is_not(
    tmp_path: Path,
) -> None:
    attempts = IsolatedAttempts()
    idle = (await attempts.result("look"))["pid"]
    task, busy = await attempts.begin(job("spin", str(tmp_path)), tmp_path)
    idle = (await attempts.result("look"))["pid"]
    assert idle != busy
    child = next(iter(attempts.pool._idle))
    await attempts.close()
    assert child.exited.result() == 0
    assert not is_left(idle)
    assert not is_left(busy)
    await task
