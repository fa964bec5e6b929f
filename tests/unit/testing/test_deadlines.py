"""`deadlineSeconds` in the test kit: the fake clock brings the deadline."""

import asyncio
from typing import Any

import pytest

from asyncjob import Fail, JobContext, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.client.errors import JobStateError
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import FakeCluster, TestKitError, run_handler

app = WorkerApp()
LEFT: list[str] = []


@app.handler("works")
async def works(job: JobContext, _: Any) -> float:
    try:
        await asyncio.sleep(3600)
    finally:
        LEFT.append(job.name)
    return job.seconds_left


@app.handler("sleeps")
async def sleeps(job: JobContext, _: Any) -> None:
    await job.sleep("nap", days=1)


@app.handler("asks")
async def asks(job: JobContext, _: Any) -> None:
    await job.signal("approval")


@app.handler("fails")
async def fails(job: JobContext, _: Any) -> None:
    raise Fail("no luck")


@app.handler("again")
async def again(job: JobContext, _: Any) -> None:
    raise ConnectionError("no luck")


ENDED = (Phase.CANCELLED, Reason.DEADLINE_EXCEEDED)


@pytest.mark.parametrize("type_", ["works", "sleeps", "asks", "again"])
async def test_a_job_ends_at_its_deadline_whatever_it_is_at(type_: str) -> None:
    policy = {"initialDelaySeconds": 600, "maxDelaySeconds": 600}
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(type_, deadline=60, retry_policy=policy)
        await cluster.run_until_idle()
        assert (job.phase, job.status.reason) == ENDED
        assert (job.status.waiting, job.attempt) == (None, 1)
        assert cluster.clock.elapsed == pytest.approx(60, abs=1)


async def test_a_job_that_has_not_started_ends_at_its_deadline() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("works", deadline_seconds=60, suspend=True)
        await cluster.run_until_idle()
        assert (job.phase, job.status.reason, job.attempt) == (*ENDED, 0)


async def test_a_handler_is_run_to_its_deadline_and_cleans_up() -> None:
    LEFT.clear()
    run = await run_handler(app, "works", deadline=60)
    assert (run.outcome.phase, run.outcome.reason) == ENDED
    assert len(LEFT) == 1


@pytest.mark.parametrize("way", ["time_out", "pass_deadline", "stop"])
async def test_a_handler_whose_time_runs_out_at_its_deadline_is_stopped_for_that(way: str) -> None:
    async with run_handler(app, "works", deadline=60, timeout=600) as run:
        await (run.stop(Stop.PAST_DEADLINE) if way == "stop" else getattr(run, way)())
        assert run.clock.elapsed == pytest.approx(60)
    assert (run.outcome.phase, run.outcome.reason) == ENDED


@pytest.mark.parametrize("options", [{}, {"deadline": 600}])
async def test_a_handler_whose_time_limit_comes_first_is_not_past_its_deadline(
    options: dict[str, Any],
) -> None:
    async with run_handler(app, "works", timeout=60, **options) as run:
        with pytest.raises(TestKitError, match="the attempt's time limit comes first"):
            await run.pass_deadline()
        await run.time_out()
    assert run.outcome.reason == Reason.EXECUTION_TIMEOUT


async def test_a_handler_sees_how_much_time_the_job_has_left() -> None:
    async with run_handler(app, "sleeps", deadline=60, timeout=600) as run:
        context = run._attempt._context  # what a handler is given
        assert context is not None
        assert context.seconds_left == pytest.approx(60)


async def test_a_dead_letter_past_its_deadline_stays_one() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("fails", deadline=60)
        await cluster.run_until_idle()
        await job.redrive()
        await cluster.run_until_idle()
        assert (job.phase, job.status.redrives, job.attempt) == (Phase.DEAD_LETTER, 1, 2)
        await cluster.advance(60)
        with pytest.raises(JobStateError, match="not redriven: its deadline passed at"):
            await job.redrive()
        await cluster.run_until_idle()
        assert (job.phase, job.status.redrives, job.attempt) == (Phase.DEAD_LETTER, 1, 2)


async def test_a_rerun_has_its_deadline_from_its_own_creation() -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit("fails", deadline=60)
        await cluster.run_until_idle()
        await cluster.advance(600)
        copy = await job.rerun()
        await cluster.run_until_idle()
        assert (copy.phase, copy.attempt) == (Phase.DEAD_LETTER, 1)
        assert copy.record.spec["deadlineSeconds"] == 60
