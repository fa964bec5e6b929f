"""Waits in `run_handler`: one attempt, in which days of them take no time."""

import asyncio
from datetime import timedelta

import pytest

from asyncjob.app import JobContext, SignalTimeout, WorkerApp
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.testing import run_handler

pytestmark = pytest.mark.filterwarnings("error")

app = WorkerApp()


@app.handler("order")
async def order(job: JobContext, _: object) -> str:
    await job.step("charge", str, "charged")
    await job.sleep("cooling-off", days=3)
    try:
        told = await job.signal("approval", str, timeout=timedelta(days=3))
    except SignalTimeout:
        return "late"
    return f"{told} by {job.signal_sender('approval')}"


@app.handler("order-sync")
def order_sync(job: JobContext, _: object) -> str:
    job.sleep("cooling-off", days=3).result()
    try:
        return job.signal("approval", str, timeout=timedelta(days=3)).result()
    except SignalTimeout:
        return "late"


@app.handler("endless")
async def endless(job: JobContext, _: object) -> str:
    return await job.signal("approval", str)


@app.handler("first")
async def first(job: JobContext, _: object) -> str:
    day = asyncio.ensure_future(job.sleep("day", days=1))
    told = asyncio.ensure_future(job.signal("approval", str))
    done, _pending = await asyncio.wait({day, told}, return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    day.cancel()
    return "told" if told in done else "day"


@pytest.mark.parametrize("type_", ["order", "order-sync"])
async def test_days_of_sleep_and_of_a_timeout_are_skipped_in_one_attempt(type_: str) -> None:
    run = await run_handler(app, type_, timeout=60)
    assert (run.outcome.phase, run.result) == (Phase.SUCCEEDED, "late")
    assert (run.job.attempt, run.job.status.parks) == (1, 0)
    assert run.clock.elapsed == pytest.approx(6 * 86_400)


async def test_a_signal_that_was_sent_is_there() -> None:
    run = await run_handler(app, "order", signals={"approval": "yes"})
    assert run.result == "yes by somebody"
    assert run.steps == {"charge": "charged"}


async def test_a_signal_that_comes_in_mid_run_ends_the_wait() -> None:
    async with run_handler(app, "order") as run:
        await run.until(lambda: run.clock.elapsed >= 3 * 86_400)
        await run.job.signal("approval", "yes", sent_by="ada")
    assert run.result == "yes by ada"


async def test_a_job_is_parked_for_a_signal_that_nobody_sends() -> None:
    run = await run_handler(app, "endless")
    assert (run.outcome.phase, run.outcome.reason) == (Phase.PENDING, Reason.WAITING_FOR_SIGNAL)


async def test_a_sleep_beside_a_signal_is_skipped() -> None:
    assert (await run_handler(app, "first")).result == "day"
    assert (await run_handler(app, "first", signals={"approval": "yes"})).result == "told"


async def test_a_test_may_have_the_job_parked_instead() -> None:
    run = await run_handler(app, "order", skip_waits=False)
    assert (run.outcome.phase, run.outcome.reason) == (Phase.SCHEDULED, Reason.SLEEPING)


async def test_the_deadline_of_the_job_counts_what_is_skipped() -> None:
    run = await run_handler(app, "order", deadline=3600)
    assert (run.outcome.phase, run.outcome.reason) == (Phase.CANCELLED, Reason.DEADLINE_EXCEEDED)
