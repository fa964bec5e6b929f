"""Running claimed jobs: what was decided before they came, and what is left when they stay."""

import asyncio
import threading
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.runner import JobRunner
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import OutcomeWriter
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING
from support.callbacks import no_children
from support.worker_parts import held, no_cluster, no_hooks

LEASE = 60.0


class Bench:
    """A runner whose heartbeats and reports only take notes."""

    def __init__(self, slots: int = 1) -> None:
        self.kept: list[str] = []
        self.outcomes: list[tuple[str, Phase]] = []
        self.exhausted = 0
        self.stores = True
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self.answers.set()
        self.freed: list[HeldJob] = []
        self.release = threading.Event()
        self.metrics = Metrics()
        heartbeat = SimpleNamespace(add=self.keep, remove=self.let_go)
        self.runner = JobRunner(
            self.app(),
            Settings(concurrency=slots, stop_grace_seconds=0.0),
            heartbeat=cast("HeartbeatThread", heartbeat),
            outcome_writer=cast("OutcomeWriter", SimpleNamespace(write=self.report)),
            on_exhausted=self.exhaust,
            on_abandoned=self.freed.append,
            events=no_hooks(),
            read_object=no_cluster,
            metrics=self.metrics,
            tracing=NO_TRACING,
            record=None,
            children=no_children,
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

    async def report(self, of: HeldJob, move: PhaseChange) -> PhaseChange | None:
        assert of.job.uid in self.kept
        assert of.writing_outcome
        self.outcomes.append((of.job.uid, move.target))
        self.asked.set()
        await self.answers.wait()
        return move if self.stores else None

    def count(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"asyncjob_worker_{name}", labels)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.release.set()
    made.runner.close()


def staying(uid: str = "u1") -> HeldJob:
    """Return a job whose handler does not return and has timed out already."""
    job = held(uid=uid, spec={"payload": "stay"})
    job.started_at -= job.policy.execution_timeout_seconds
    return job


async def test_a_lease_is_kept_until_the_outcome_is_stored(bench: Bench) -> None:
    await bench.runner.run(held())
    assert bench.outcomes == [("u1", Phase.SUCCEEDED)]
    assert bench.kept == []
    assert not bench.runner.running


async def test_what_becomes_of_attempts_is_counted_by_type(bench: Bench) -> None:
    await bench.runner.run(held())
    lost = held(uid="u2")
    lost.stop(Stop.FENCED)
    await bench.runner.run(lost)
    bench.stores = False
    await bench.runner.run(held(uid="u3"))
    assert bench.count("jobs_finished_total", type="echo", phase="Succeeded", reason="") == 1
    assert bench.count("fenced_total", type="echo") == 2
    assert bench.count("handler_seconds_count", type="echo") == 2


async def test_hooks_are_told_of_an_outcome_only_once_it_is_stored(bench: Bench) -> None:
    told: list[str] = []

    def ended(of: HeldJob, stored: PhaseChange, seconds: float) -> None:
        assert bench.outcomes == [(of.job.uid, stored.target)]
        told.append(f"{stored.target} {seconds >= 0}")

    telling: Any = SimpleNamespace(
        claimed=lambda _: told.append("claimed"),
        started=lambda _: told.append("started"),
        ended=ended,
    )
    bench.runner._events = telling
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
    control: dict[str, Any] = {"metadata": {"uid": "u1"}}
    bench.runner.cancel_watcher.apply(WatchEvent("ADDED", control))
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
    bench.runner.stop_waiting_for_abandoned()
    await running
    assert bench.runner.abandoned == 1


async def test_a_worker_whose_slots_are_all_abandoned_does_not_restart_once_it_drains(
    bench: Bench,
) -> None:
    bench.runner.stop_waiting_for_abandoned()
    await bench.runner.run(staying())
    assert (bench.runner.abandoned, bench.exhausted) == (1, 0)


async def test_a_handler_that_outlasts_the_drain_keeps_its_job_leased_and_unreleased(
    bench: Bench,
) -> None:
    of = held(spec={"payload": "stay"})
    running = asyncio.ensure_future(bench.runner.run(of))
    await begun(bench)
    bench.runner.stop_waiting_for_abandoned()
    bench.runner.stop_all(Stop.DRAINING)
    await running
    assert bench.outcomes == []
    assert (bench.kept, bench.runner.running) == (["u1"], {of})
    assert bench.runner.outliving == {of}


async def test_a_job_is_leased_until_the_end_of_a_process_that_gives_up_its_slots(
    bench: Bench,
) -> None:
    running = asyncio.ensure_future(bench.runner.run(held(spec={"payload": "stay"})))
    await begun(bench)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.kept == ["u1"]


async def test_no_job_outlives_a_worker_that_is_cancelled_while_it_writes_the_outcome(
    bench: Bench,
) -> None:
    bench.answers.clear()
    running = asyncio.ensure_future(bench.runner.run(held()))
    await bench.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not bench.runner.outliving


async def test_a_job_whose_lease_has_ended_before_the_claim_was_answered_is_not_started(
    bench: Bench,
) -> None:
    late = held(sent_at=boottime() - LEASE)
    await bench.runner.run(late)
    assert late.stopped is Stop.FENCED
    assert bench.outcomes == []
    assert bench.count("handler_seconds_count", type="echo") is None
    assert bench.count("fenced_total", type="echo") == 1


async def test_the_event_loop_stops_a_handler_in_time_where_the_heartbeat_thread_hangs(
    bench: Bench,
) -> None:
    kept, late = held(spec={"payload": "stay"}), held(uid="u2", spec={"payload": "stay"})
    running = [asyncio.ensure_future(bench.runner.run(one)) for one in (kept, late)]
    await begun(bench)
    late.sent_at -= LEASE
    bench.runner.fence_expired()
    assert (kept.stopped, late.stopped) == (None, Stop.FENCED)
    bench.release.set()
    await asyncio.gather(*running)


async def test_an_outcome_that_is_being_written_is_not_fenced(bench: Bench) -> None:
    late = held(sent_at=boottime() - LEASE)
    late.writing_outcome = True
    bench.runner.running.add(late)
    bench.runner.fence_expired()
    assert late.stopped is None


async def test_of_two_claims_of_one_job_the_end_of_the_first_leaves_the_second_alone(
    bench: Bench,
) -> None:
    """The old handler ignored its stop, and the job was claimed again by the same worker."""
    first, second = held(), held(spec={"payload": "stay"}, claim="c2", attempt=2)
    first.stop(Stop.FENCED)
    running = asyncio.ensure_future(bench.runner.run(second))
    await begun(bench)
    await bench.runner.run(first)
    assert bench.runner.running == {second}
    bench.runner.cancel_watcher.apply(WatchEvent("MODIFIED", {"metadata": {"uid": "u1"}}))
    assert second.stopped is Stop.CANCELLED
    bench.release.set()
    await running
    assert not bench.runner.running


async def begun(bench: Bench) -> None:
    """Wait until a handler runs."""
    for _ in range(100):
        if bench.runner.running_handlers.futures:
            return
        await asyncio.sleep(0)
    raise AssertionError("no handler has begun")


async def reported(bench: Bench) -> None:
    """Wait until the outcome of the one job is there and its handler known as abandoned."""
    for _ in range(100):
        if bench.outcomes and bench.runner.abandoned:
            return
        await asyncio.sleep(0)
    raise AssertionError(bench.outcomes)
