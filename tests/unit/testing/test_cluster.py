"""Whole lives of jobs in the fake cluster: what it plays, and how time passes there."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from asyncjob import JobContext, RetryPolicy, WorkerApp
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import FakeCluster, StuckError, TestKitError

app = WorkerApp()
release: asyncio.Event


@app.handler("echo")
async def echo(job: JobContext, payload: Any) -> Any:
    return payload


@app.handler("flaky")
async def flaky(job: JobContext, payload: int) -> int:
    if job.attempt <= payload:
        raise ConnectionError("down")
    return job.attempt


@app.handler("import")
async def import_(job: JobContext, payload: int) -> list[int]:
    last = job.last_checkpoint
    first = last if isinstance(last, int) else 0
    for row in range(first, payload):
        await asyncio.sleep(60)
        await job.checkpoint(row + 1)
    return list(range(first, payload))


@app.handler("waits")
async def waits(job: JobContext) -> str:
    await release.wait()
    await asyncio.sleep(1000)
    return "released"


@app.handler("swallows")
async def swallows(job: JobContext) -> str:
    while True:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            continue


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    global release  # noqa: PLW0603  # belongs to the test's event loop
    release = asyncio.Event()
    async with FakeCluster(app, patience=0.05) as running:
        yield running


async def test_time_is_skipped_through_backoffs(cluster: FakeCluster) -> None:
    retry = RetryPolicy(max_retries=5, initial_delay_seconds=100)
    job = await cluster.submit("flaky", 3, retry=retry)
    await cluster.run_until_idle()
    assert job.result == 4
    assert cluster.clock.elapsed == 100 + 200 + 400
    assert job.phases == (
        *(Phase.QUEUED, Phase.RUNNING, Phase.RETRYING) * 3,
        *(Phase.QUEUED, Phase.RUNNING, Phase.SUCCEEDED),
    )


async def test_advance_lets_happen_what_falls_into_it_and_no_more(cluster: FakeCluster) -> None:
    job = await cluster.submit("flaky", 2, retry=RetryPolicy(initial_delay_seconds=100, jitter=0))
    await cluster.advance(99)
    assert (job.phase, job.attempt, cluster.clock.elapsed) == (Phase.RETRYING, 1, 99)
    await cluster.advance(timedelta(seconds=2))
    assert (job.phase, job.attempt, cluster.clock.elapsed) == (Phase.RETRYING, 2, 101)


async def test_a_job_starts_at_its_time(cluster: FakeCluster) -> None:
    later = cluster.clock.now + timedelta(hours=1)
    job = await cluster.submit("echo", 1, not_before=later)
    await cluster.advance(3599)
    assert (job.phase, job.reason) == (Phase.SCHEDULED, Reason.NOT_BEFORE)
    await cluster.advance(1)
    assert job.phase is Phase.SUCCEEDED


async def test_a_crash_in_mid_run_resumes_from_the_checkpoint(cluster: FakeCluster) -> None:
    job = await cluster.submit("import", 4)
    await cluster.run_until(lambda: job.checkpoint == 2)
    await job.crash()
    assert (job.phase, job.reason) == (Phase.QUEUED, Reason.WORKER_CRASHED)
    await cluster.run_until_idle()
    assert (job.result, job.status.crashes, job.status.retries) == ([2, 3], 1, 0)
    workers = [entry.worker for entry in job.history if entry.worker]
    assert len(set(workers)) == 2


async def test_a_crash_budget_is_spent(cluster: FakeCluster) -> None:
    job = await cluster.submit("import", 4, retry=RetryPolicy(max_crashes=1))
    for _ in range(2):
        await cluster.run_until(lambda: job.phase is Phase.RUNNING)
        await job.crash()
    assert (job.phase, job.reason) == (Phase.DEAD_LETTER, Reason.CRASH_BUDGET_EXHAUSTED)


async def test_a_crash_while_cancelled_cancels(cluster: FakeCluster) -> None:
    job = await cluster.submit("import", 4)
    await cluster.run_until(lambda: job.checkpoint)
    await job.cancel()
    await job.crash()
    assert (job.phase, job.reason) == (Phase.CANCELLED, Reason.CANCEL_REQUESTED)


async def test_a_job_that_does_not_run_has_no_worker_to_lose(cluster: FakeCluster) -> None:
    job = await cluster.submit("echo", 1)
    with pytest.raises(TestKitError, match="job-1 is Queued: only a running job has a worker"):
        await job.crash()
    with pytest.raises(TestKitError, match="only a running job"):
        await job.drain()


async def test_the_fourth_release_waits_for_a_backoff(cluster: FakeCluster) -> None:
    job = await cluster.submit("import", 1)
    for _ in range(4):
        await cluster.run_until(lambda: job.phase is Phase.RUNNING)
        await job.drain()
        await cluster.run_until(lambda: job.phase is not Phase.RUNNING)
    assert (job.phase, job.status.releases, job.status.retries) == (Phase.RETRYING, 4, 0)


async def test_redrive_rerun_and_dismissal(cluster: FakeCluster) -> None:
    job = await cluster.submit("flaky", 2, retry=RetryPolicy(max_retries=0))
    await cluster.run_until_idle()
    assert job.reason is Reason.RETRIES_EXHAUSTED
    again = await job.rerun()
    await job.redrive()
    await cluster.run_until_idle()
    assert (job.attempt, job.phase, again.phase) == (2, Phase.DEAD_LETTER, Phase.DEAD_LETTER)
    assert again.model.spec.rerun_of is not None
    assert again.model.spec.rerun_of.uid == job.uid
    await job.cancel()
    await again.redrive()
    await cluster.run_until_idle()
    assert (job.reason, again.attempt) == (Reason.DISMISSED, 2)
    assert [each.name for each in cluster.jobs] == ["job-1", "job-1-r1"]


async def test_a_suspended_job_waits_until_resumed(cluster: FakeCluster) -> None:
    job = await cluster.submit("echo", 1, suspend=True)
    await cluster.run_until_idle()
    assert job.reason is Reason.SUSPENDED
    await job.resume()
    await cluster.run_until_idle()
    assert job.phase is Phase.SUCCEEDED
    assert [entry.reason for entry in job.history][:2] == [Reason.SUSPENDED, Reason.GATE_OPENED]


async def test_a_type_without_handler_waits_for_its_queue_timeout(cluster: FakeCluster) -> None:
    job = await cluster.submit("unknown")
    await cluster.advance(7199)
    assert job.phase is Phase.QUEUED
    await cluster.run_until_idle()
    assert job.reason is Reason.QUEUE_TIMEOUT


async def test_a_handler_that_ignores_its_stop_is_abandoned(cluster: FakeCluster) -> None:
    job = await cluster.submit("swallows", timeout=10, retry=RetryPolicy(max_retries=0))
    await cluster.run_until_idle()
    assert job.reason is Reason.RETRIES_EXHAUSTED
    assert cluster.clock.elapsed == 15


async def test_higher_priority_starts_first_and_equals_in_their_order() -> None:
    seen: list[str] = []
    local = WorkerApp()

    @local.handler("notes")
    async def notes(job: JobContext) -> None:
        seen.append(job.name)

    async with FakeCluster(local, concurrency=1) as cluster:
        for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
            await cluster.submit("notes", name=name, priority=priority)
        await cluster.run_until_idle()
    assert seen == ["b", "d", "a", "c"]


async def test_no_more_handlers_run_at_a_time_than_the_worker_has_slots() -> None:
    async with FakeCluster(app, concurrency=2) as cluster:
        jobs = [await cluster.submit("import", 1) for _ in range(3)]
        await cluster.run_until(lambda: jobs[0].phase is Phase.SUCCEEDED)
        await cluster.run_until_idle()
    assert [job.status.start_time for job in jobs] == [
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:01:00.000Z",
    ]


@pytest.mark.parametrize("control", ["suspend", "cancel"])
async def test_an_admitted_job_is_not_claimed_once_it_is_suspended_or_cancelled(
    cluster: FakeCluster, control: str
) -> None:
    job = await cluster.submit("echo", 1, not_after="2026-01-01T01:00:00Z")
    await cluster.run_until(lambda: job.status.admitted)
    await getattr(job, control)()
    await cluster.advance(600)
    assert job.attempt == 0
    assert job.phase in {Phase.PENDING, Phase.CANCELLED}


async def test_deadline_and_queue_timeout_concern_the_first_start_alone() -> None:
    async with FakeCluster(app, concurrency=1) as cluster:
        late = "2026-01-01T00:00:10Z"
        job = await cluster.submit("flaky", 1, not_after=late, queue_timeout_seconds=5)
        await cluster.run_until(lambda: job.phase is Phase.RETRYING)
        await cluster.submit("import", 1, priority=9)
        await cluster.run_until_idle()
    assert (job.result, job.status.start_time) == (2, "2026-01-01T00:01:00.000Z")


async def test_a_job_suspended_in_its_backoff_is_queued_without_being_admitted(
    cluster: FakeCluster,
) -> None:
    job = await cluster.submit("flaky", 1)
    await cluster.run_until(lambda: job.phase is Phase.RETRYING)
    await job.suspend()
    await cluster.run_until(lambda: job.phase is Phase.QUEUED)
    assert job.status.admitted is None
    await cluster.run_until_idle()
    assert job.reason is Reason.SUSPENDED
    await job.resume()
    await cluster.run_until_idle()
    assert job.result == 2


async def test_a_cancel_waits_for_the_handler_as_long_as_the_grace_allows(
    cluster: FakeCluster,
) -> None:
    job = await cluster.submit("swallows", cancel_grace_seconds=20)
    await cluster.run_until(lambda: job.phase is Phase.RUNNING)
    await job.cancel()
    await cluster.run_until_idle()
    assert (job.phase, cluster.clock.elapsed) == (Phase.CANCELLED, 19)


async def test_a_cancel_comes_too_late_for_a_handler_that_is_over(cluster: FakeCluster) -> None:
    job = await cluster.submit("echo", 1)
    await cluster.run_until(lambda: job.phase is Phase.RUNNING)
    await job.cancel()
    await cluster.run_until_idle()
    assert job.phase is Phase.SUCCEEDED


async def test_a_handler_that_waits_for_the_test_is_said_to_be_stuck_or_goes_on(
    cluster: FakeCluster,
) -> None:
    job = await cluster.submit("waits")
    with pytest.raises(StuckError, match="handlers of job-1 have neither ended nor slept"):
        await cluster.run_until_idle()
    release.set()
    await cluster.run_until_idle()
    assert (job.result, cluster.clock.elapsed) == ("released", 1000)


async def test_time_passes_for_a_handler_that_hangs_if_it_is_told_to(cluster: FakeCluster) -> None:
    job = await cluster.submit("waits", timeout=50, retry=RetryPolicy(max_retries=0))
    await cluster.advance(60)
    assert (job.phase, job.status.error and job.status.error.category) == (
        Phase.DEAD_LETTER,
        "Timeout",
    )


async def test_a_condition_that_never_holds_is_said_to_be_so(cluster: FakeCluster) -> None:
    await cluster.submit("echo", 1)
    with pytest.raises(StuckError, match="nothing more will happen"):
        await cluster.run_until(lambda: False)


async def test_two_at_once_are_refused(cluster: FakeCluster) -> None:
    await cluster.submit("waits")
    first = asyncio.create_task(cluster.run_until_idle())
    await asyncio.sleep(0)
    with pytest.raises(TestKitError, match="already"):
        await cluster.advance(1)
    release.set()
    await first
