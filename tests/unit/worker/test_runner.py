"""Running claimed jobs: what was decided before they came, and what is left when they stay."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app.stop import Stop
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.held import HeldJob
from asyncjob_worker.keeper import Keeper
from asyncjob_worker.reporter import Reporter
from asyncjob_worker.runner import JobRunner
from asyncjob_worker.settings import Settings
from support.worker_parts import held


class Bench:
    """A runner whose heartbeats and reports only take notes."""

    def __init__(self, slots: int = 1) -> None:
        self.kept: list[str] = []
        self.outcomes: list[tuple[str, Phase]] = []
        self.exhausted = 0
        self.stores = True
        self.freed: list[str] = []
        self.release = threading.Event()
        keeper = SimpleNamespace(keep=self.keep, let_go=self.let_go)
        self.runner = JobRunner(
            self.app(),
            Settings(concurrency=slots, stop_wait=0.0),
            keeper=cast("Keeper", keeper),
            reporter=cast("Reporter", SimpleNamespace(report=self.report)),
            on_exhausted=self.exhaust,
            on_abandoned=self.freed.append,
        )

    def app(self) -> WorkerApp:
        app = WorkerApp()

        @app.handler("echo")
        def echo(job: JobContext, payload: Any) -> Any:
            if payload == "stay":
                self.release.wait(30)
            return payload

        return app

    def keep(self, of: HeldJob) -> None:
        self.kept.append(of.job.uid)

    def let_go(self, of: HeldJob) -> None:
        self.kept.remove(of.job.uid)

    def exhaust(self) -> None:
        self.exhausted += 1

    async def report(self, of: HeldJob, move: Move) -> Move | None:
        assert of.job.uid in self.kept
        assert of.reporting
        self.outcomes.append((of.job.uid, move.target))
        return move if self.stores else None


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.release.set()
    made.runner.close()


def staying(uid: str = "u1") -> HeldJob:
    """Return a job whose handler does not return and has timed out already."""
    return held(uid=uid, sent_at=0.0, spec={"payload": "stay"})


async def test_a_lease_is_kept_until_the_outcome_is_stored(bench: Bench) -> None:
    await bench.runner.run(held())
    assert bench.outcomes == [("u1", Phase.SUCCEEDED)]
    assert bench.kept == []
    assert not bench.runner.running


async def test_hooks_are_told_of_an_outcome_only_once_it_is_stored(bench: Bench) -> None:
    told: list[str] = []

    def ended(of: HeldJob, stored: Move, seconds: float) -> None:
        assert bench.outcomes == [(of.job.uid, stored.target)]
        told.append(f"{stored.target} {seconds >= 0}")

    telling: Any = SimpleNamespace(
        claimed=lambda _: told.append("claimed"),
        started=lambda _: told.append("started"),
        ended=ended,
    )
    bench.runner._telling = telling
    await bench.runner.run(held())
    assert told == ["claimed", "started", "Succeeded True"]
    told.clear()
    bench.stores = False
    await bench.runner.run(held())
    assert told == ["claimed", "started"]


async def test_a_claim_answered_after_the_grace_is_released_unstarted(bench: Bench) -> None:
    bench.runner.stop_all(Stop.DRAINING)
    await bench.runner.run(held(spec={"payload": "stay"}))
    assert bench.outcomes == [("u1", Phase.QUEUED)]


async def test_a_cancel_seen_before_the_claims_answer_counts(bench: Bench) -> None:
    wish: dict[str, Any] = {"metadata": {"uid": "u1"}}
    bench.runner.cancels.apply(WatchEvent("ADDED", wish))
    await bench.runner.run(held(spec={"payload": "stay"}))
    assert bench.outcomes == [("u1", Phase.CANCELLED)]


async def test_an_abandoned_handler_keeps_its_slot_until_it_ends(bench: Bench) -> None:
    running = asyncio.ensure_future(bench.runner.run(staying()))
    await reported(bench)
    assert (running.done(), bench.runner.abandoned, bench.exhausted) == (False, 1, 1)
    assert len(bench.freed) == 1
    bench.release.set()
    await running
    assert bench.runner.abandoned == 0


async def test_a_worker_with_a_slot_left_does_not_restart() -> None:
    bench = Bench(slots=2)
    running = asyncio.ensure_future(bench.runner.run(staying()))
    await reported(bench)
    assert (bench.runner.abandoned, bench.exhausted) == (1, 0)
    bench.release.set()
    await running
    bench.runner.close()


async def test_a_draining_worker_waits_for_no_abandoned_handler(bench: Bench) -> None:
    running = asyncio.ensure_future(bench.runner.run(staying()))
    await reported(bench)
    bench.runner.give_up_waiting()
    await running
    assert bench.runner.abandoned == 1


async def test_whoever_ends_the_worker_learns_of_each_handler_that_still_runs(
    bench: Bench,
) -> None:
    running = asyncio.ensure_future(bench.runner.run(held(spec={"payload": "stay"})))
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    left = await bench.runner.leftovers(0.0)
    bench.release.set()
    assert (left, await bench.runner.leftovers(10.0)) == (1, 0)


async def reported(bench: Bench) -> None:
    """Wait until the outcome of the one job is there and its handler known as abandoned."""
    for _ in range(100):
        if bench.outcomes and bench.runner.abandoned:
            return
        await asyncio.sleep(0)
    raise AssertionError(bench.outcomes)
