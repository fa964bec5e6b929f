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
from support.parts.worker_parts import attempt_services, held, no_hooks

LEASE = 60.0


class JobRunnerHarness:
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
        settings = Settings(concurrency=slots, stop_grace_seconds=0.0)
        self.runner = JobRunner(
            self.app(),
            settings,
            heartbeat=cast("HeartbeatThread", heartbeat),
            outcome_writer=cast("OutcomeWriter", SimpleNamespace(write=self.report)),
            on_exhausted=self.exhaust,
            on_abandoned=self.freed.append,
            services=attempt_services(settings),
            events=no_hooks(),
            metrics=self.metrics,
            tracing=NO_TRACING,
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
async def harness() -> AsyncIterator[JobRunnerHarness]:
    made = JobRunnerHarness()
    yield made
    made.release.set()
    made.runner.close()


def staying(uid: str = "u1") -> HeldJob:
    """Return a job whose handler does not return and has timed out already."""
    job = held(uid=uid, spec={"payload": "stay"})
    job.started_at -= job.policy.execution_timeout_seconds
    return job


async def test_a_lease_is_kept_until_the_outcome_is_stored(harness: JobRunnerHarness) -> None:
    await harness.runner.run(held())
    assert harness.outcomes == [("u1", Phase.SUCCEEDED)]
    assert harness.kept == []
    assert not harness.runner.running


async def test_what_becomes_of_attempts_is_counted_by_type(harness: JobRunnerHarness) -> None:
    await harness.runner.run(held())
    lost = held(uid="u2")
    lost.stop(Stop.FENCED)
    await harness.runner.run(lost)
    harness.stores = False
    await harness.runner.run(held(uid="u3"))
    assert harness.count("jobs_finished_total", type="echo", phase="Succeeded", reason="") == 1
    assert harness.count("fenced_total", type="echo") == 2
    assert harness.count("handler_seconds_count", type="echo") == 2


async def test_hooks_are_told_of_an_outcome_only_once_it_is_stored(
    harness: JobRunnerHarness,
) -> None:
    told: list[str] = []

    def ended(of: HeldJob, stored: PhaseChange, seconds: float) -> None:
        assert harness.outcomes == [(of.job.uid, stored.target)]
        told.append(f"{stored.target} {seconds >= 0}")

    telling: Any = SimpleNamespace(
        claimed=lambda _: told.append("claimed"),
        started=lambda _: told.append("started"),
        ended=ended,
    )
    harness.runner._events = telling
    await harness.runner.run(held())
    assert told == ["claimed", "started", "Succeeded True"]
    told.clear()
    harness.stores = False
    await harness.runner.run(held())
    assert told == ["claimed", "started"]


async def test_a_claim_answered_after_the_grace_is_released_unstarted(
    harness: JobRunnerHarness,
) -> None:
    harness.runner.stop_all(Stop.DRAINING)
    await harness.runner.run(held(spec={"payload": "stay"}))
    assert harness.outcomes == [("u1", Phase.QUEUED)]


async def test_a_cancel_seen_before_the_claims_answer_counts(harness: JobRunnerHarness) -> None:
    control: dict[str, Any] = {"metadata": {"uid": "u1"}}
    harness.runner.cancel_watcher.apply(WatchEvent("ADDED", control))
    await harness.runner.run(held(spec={"payload": "stay"}))
    assert harness.outcomes == [("u1", Phase.CANCELLED)]


async def test_an_abandoned_handler_keeps_its_slot_until_it_ends(harness: JobRunnerHarness) -> None:
    running = asyncio.ensure_future(harness.runner.run(staying()))
    await reported(harness)
    assert (running.done(), harness.runner.abandoned, harness.exhausted) == (False, 1, 1)
    assert len(harness.freed) == 1
    harness.release.set()
    await running
    assert harness.runner.abandoned == 0


async def test_a_worker_with_a_slot_left_does_not_restart() -> None:
    harness = JobRunnerHarness(slots=2)
    running = asyncio.ensure_future(harness.runner.run(staying()))
    await reported(harness)
    assert (harness.runner.abandoned, harness.exhausted) == (1, 0)
    harness.release.set()
    await running
    harness.runner.close()


async def test_a_draining_worker_waits_for_no_abandoned_handler(harness: JobRunnerHarness) -> None:
    running = asyncio.ensure_future(harness.runner.run(staying()))
    await reported(harness)
    harness.runner.stop_waiting_for_abandoned()
    await running
    assert harness.runner.abandoned == 1


async def test_a_worker_whose_slots_are_all_abandoned_does_not_restart_once_it_drains(
    harness: JobRunnerHarness,
) -> None:
    harness.runner.stop_waiting_for_abandoned()
    await harness.runner.run(staying())
    assert (harness.runner.abandoned, harness.exhausted) == (1, 0)


async def test_a_handler_that_outlasts_the_drain_keeps_its_job_leased_and_unreleased(
    harness: JobRunnerHarness,
) -> None:
    of = held(spec={"payload": "stay"})
    running = asyncio.ensure_future(harness.runner.run(of))
    await begun(harness)
    harness.runner.stop_waiting_for_abandoned()
    harness.runner.stop_all(Stop.DRAINING)
    await running
    assert harness.outcomes == []
    assert (harness.kept, harness.runner.running) == (["u1"], {of})
    assert harness.runner.outliving == {of}


async def test_a_job_is_leased_until_the_end_of_a_process_that_gives_up_its_slots(
    harness: JobRunnerHarness,
) -> None:
    running = asyncio.ensure_future(harness.runner.run(held(spec={"payload": "stay"})))
    await begun(harness)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert harness.kept == ["u1"]


async def test_no_job_outlives_a_worker_that_is_cancelled_while_it_writes_the_outcome(
    harness: JobRunnerHarness,
) -> None:
    harness.answers.clear()
    running = asyncio.ensure_future(harness.runner.run(held()))
    await harness.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not harness.runner.outliving


async def test_a_job_whose_lease_has_ended_before_the_claim_was_answered_is_not_started(
    harness: JobRunnerHarness,
) -> None:
    late = held(sent_at=boottime() - LEASE)
    await harness.runner.run(late)
    assert late.stopped is Stop.FENCED
    assert harness.outcomes == []
    assert harness.count("handler_seconds_count", type="echo") is None
    assert harness.count("fenced_total", type="echo") == 1


async def test_the_event_loop_stops_a_handler_in_time_where_the_heartbeat_thread_hangs(
    harness: JobRunnerHarness,
) -> None:
    kept, late = held(spec={"payload": "stay"}), held(uid="u2", spec={"payload": "stay"})
    running = [asyncio.ensure_future(harness.runner.run(one)) for one in (kept, late)]
    await begun(harness)
    late.sent_at -= LEASE
    harness.runner.fence_expired()
    assert (kept.stopped, late.stopped) == (None, Stop.FENCED)
    harness.release.set()
    await asyncio.gather(*running)


async def test_an_outcome_that_is_being_written_is_not_fenced(harness: JobRunnerHarness) -> None:
    late = held(sent_at=boottime() - LEASE)
    late.writing_outcome = True
    harness.runner.running.add(late)
    harness.runner.fence_expired()
    assert late.stopped is None


async def test_of_two_claims_of_one_job_the_end_of_the_first_leaves_the_second_alone(
    harness: JobRunnerHarness,
) -> None:
    """The old handler ignored its stop, and the job was claimed again by the same worker."""
    first, second = held(), held(spec={"payload": "stay"}, claim="c2", attempt=2)
    first.stop(Stop.FENCED)
    running = asyncio.ensure_future(harness.runner.run(second))
    await begun(harness)
    await harness.runner.run(first)
    assert harness.runner.running == {second}
    harness.runner.cancel_watcher.apply(WatchEvent("MODIFIED", {"metadata": {"uid": "u1"}}))
    assert second.stopped is Stop.CANCELLED
    harness.release.set()
    await running
    assert not harness.runner.running


async def begun(harness: JobRunnerHarness) -> None:
    """Wait until a handler runs."""
    for _ in range(100):
        if harness.runner.running_handlers.futures:
            return
        await asyncio.sleep(0)
    raise AssertionError("no handler has begun")


async def reported(harness: JobRunnerHarness) -> None:
    """Wait until the outcome of the one job is there and its handler known as abandoned."""
    for _ in range(100):
        if harness.outcomes and harness.runner.abandoned:
            return
        await asyncio.sleep(0)
    raise AssertionError(harness.outcomes)
