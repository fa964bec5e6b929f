"""Sleeps of handlers in the test kit: days pass in no time, and each step is taken once."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from asyncjob.app import Fail, JobContext, WorkerApp
from asyncjob.app.errors import StepError
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import FakeCluster, FakeJob

pytestmark = pytest.mark.filterwarnings("error")

PARKED_ONCE = (
    Phase.QUEUED,
    Phase.RUNNING,
    Phase.SCHEDULED,
    Phase.QUEUED,
    Phase.RUNNING,
    Phase.SUCCEEDED,
)


async def settled(app: WorkerApp, act: Callable[[FakeJob], object] | None = None) -> FakeJob:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        if act is not None:
            await cluster.run_until(lambda: job.phase is Phase.SCHEDULED)
            await act(job)  # type: ignore[misc]  # what a user does is awaited
        await cluster.run_until_idle()
        return job


async def test_an_async_handler_sleeps_for_days_and_takes_its_steps_once() -> None:
    app, taken, ended = WorkerApp(), list[str](), list[str]()

    @app.handler("job")
    async def handle(job: JobContext) -> tuple[int, str]:
        try:
            await job.step("before", taken.append, "before")
            await job.sleep("nap", days=3)
            await job.step("after", taken.append, "after")
        finally:
            ended.append("attempt")
        return job.attempt, job.fencing_token[-2:]

    job = await settled(app)
    assert job.phases == PARKED_ONCE
    assert job.result == [1, "/2"]
    assert taken == ["before", "after"]
    assert ended == ["attempt", "attempt"]
    assert job.status.parks == 1
    assert [entry.phase for entry in job.history] == [Phase.SUCCEEDED]
    ends = job.status.waits or {}
    assert ends["nap"].until == "2026-01-04T00:00:00.000Z"
    assert ends["nap"].over
    assert job.status.waiting is None


async def test_a_sync_handler_sleeps_as_well() -> None:
    app, taken = WorkerApp(), list[str]()

    @app.handler("job")
    def handle(job: JobContext) -> int:
        job.step("before", taken.append, "before").result()
        job.sleep("nap", timedelta(hours=1)).result()
        return job.attempt

    job = await settled(app)
    assert (job.phases, job.result, taken) == (PARKED_ONCE, 1, ["before"])


async def test_a_job_parks_only_once_no_body_of_a_step_runs() -> None:
    app, bodies = WorkerApp(), list[str]()

    async def body() -> str:
        bodies.append("begun")
        await asyncio.sleep(600)
        return "done"

    @app.handler("job")
    async def handle(job: JobContext) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(_awaited(job.sleep("nap", hours=1)))
            step = group.create_task(_awaited(job.step("slow", body)))
        return str(step.result())

    job = await settled(app)
    assert (job.phases, job.result, bodies) == (PARKED_ONCE, "done", ["begun"])


async def _awaited(call: object) -> object:
    return await call  # type: ignore[misc]  # a step or a wait


async def test_a_sleep_that_ends_while_a_body_runs_parks_nothing() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> str:
        _, done = await asyncio.gather(
            _awaited(job.sleep("nap", seconds=30)), _awaited(job.step("slow", _ten_minutes))
        )
        return str(done)

    job = await settled(app)
    assert (job.status.parks, job.result, job.attempt) == (0, "done", 1)


async def _ten_minutes() -> str:
    await asyncio.sleep(600)
    return "done"


async def test_the_job_names_what_it_is_parked_for_and_is_cancelled_there() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> None:
        await job.sleep("nap", hours=1)

    async def cancel(job: FakeJob) -> None:
        [waiting] = job.status.waiting or []
        assert (waiting.kind, waiting.key) == ("Sleep", "nap")
        assert job.reason is Reason.SLEEPING
        assert job.message == "sleeps until 2026-01-01T01:00:00.000Z (nap)"
        await job.cancel()

    job = await settled(app, cancel)
    assert job.phase is Phase.CANCELLED
    assert job.status.waiting is None
    assert [entry.phase for entry in job.history] == [Phase.CANCELLED]


async def test_a_redrive_counts_parks_again_and_keeps_sleeps_that_are_over() -> None:
    app, failures = WorkerApp(), [Fail("not yet")]

    @app.handler("job")
    async def handle(job: JobContext) -> int:
        await job.sleep("nap", hours=1)
        if failures:
            raise failures.pop()
        return job.attempt

    async with FakeCluster(app) as cluster:
        job = await cluster.submit("job")
        await cluster.run_until_idle()
        assert (job.phase, job.status.parks) == (Phase.DEAD_LETTER, 1)
        await job.redrive()
        await cluster.run_until_idle()
    assert (job.phase, job.status.parks) == (Phase.SUCCEEDED, 0)
    assert (job.status.waits or {})["nap"].over


async def test_a_handler_that_swallows_the_park_is_a_dead_letter() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> str:
        try:
            await job.sleep("nap", hours=1)
        except BaseException:  # noqa: BLE001  # what the test is about
            return "went on"
        return "slept"

    job = await settled(app)
    assert job.phase is Phase.DEAD_LETTER
    assert job.message is not None
    assert "Parked" in job.message


@pytest.mark.parametrize(
    ("days", "message"), [(366, "not between 0 and"), (-1, "not between 0 and"), (1e12, "no such")]
)
async def test_no_sleep_is_longer_than_a_year_or_shorter_than_nothing(
    days: float, message: str
) -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> None:
        with pytest.raises(StepError, match=message):
            job.sleep("nap", days=days)

    assert (await settled(app)).phase is Phase.SUCCEEDED


async def test_a_key_names_one_step_or_sleep_of_an_attempt() -> None:
    app = WorkerApp()

    @app.handler("job")
    async def handle(job: JobContext) -> None:
        asyncio.ensure_future(job.sleep("same", hours=1)).cancel()
        with pytest.raises(StepError, match="used this key before"):
            job.step("same", _ten_minutes)

    assert (await settled(app)).phase is Phase.SUCCEEDED
