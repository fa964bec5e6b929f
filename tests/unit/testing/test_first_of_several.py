"""A handler that goes on with whichever wait is over first, in the test kit."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from asyncjob.app import JobContext, WorkerApp
from asyncjob.lifecycle.phases import Phase
from asyncjob.testing import FakeCluster, FakeJob

pytestmark = pytest.mark.filterwarnings("error")

app = WorkerApp()


@app.handler("leaf")
async def leaf(_: JobContext, seconds: float) -> float:
    """Be a child that takes so long."""
    await asyncio.sleep(seconds)
    return seconds


async def first_of(**waits: Awaitable[Any]) -> str:
    """Return the name of the first wait in order that is over; the others are cancelled."""
    tasks = {name: asyncio.ensure_future(wait) for name, wait in waits.items()}
    done, pending = await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    for one in pending:
        one.cancel()
    return next(name for name, task in tasks.items() if task in done)


def noted(name: str) -> str:
    return name


@app.handler("day-first")
async def day_first(job: JobContext, seconds: float) -> list[Any]:
    first = await first_of(day=job.sleep("day", seconds=seconds), told=job.signal("go"))
    return [await job.step("note", noted, first), job.attempt]


@app.handler("told-first")
async def told_first(job: JobContext, seconds: float) -> list[Any]:
    first = await first_of(told=job.signal("go"), day=job.sleep("day", seconds=seconds))
    return [await job.step("note", noted, first), job.attempt]


@app.handler("children")
async def children(job: JobContext, seconds: float) -> list[Any]:
    kids = [await job.submit("leaf", seconds, key=str(number)) for number in range(2)]
    first = await first_of(kids=job.gather(*kids), told=job.signal("go"))
    first = await job.step("note", noted, first)
    await job.sleep("later", days=200)
    return [first, job.attempt]


HANDLERS = ["day-first", "told-first"]
DAY = 86_400.0


async def played(
    type_: str, payload: float, act: Callable[[FakeJob], Awaitable[object]] | None
) -> FakeJob:
    """Return the job at its end; something may be done to it once it is parked."""
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(type_, payload)
        if act is not None:
            await cluster.run_until(lambda: bool(job.status.waiting))
            await act(job)
        await cluster.run_until_idle()
        return job


async def tell(job: FakeJob) -> None:
    named = {(one.kind, one.key) for one in job.status.waiting or []}
    assert named == {("Signal", "go"), ("Sleep", "day")}
    await job.signal("go", None, sent_by="ada")


@pytest.mark.parametrize("type_", HANDLERS)
async def test_a_signal_that_is_first_ends_both_waits(type_: str) -> None:
    job = await played(type_, DAY, tell)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, ["told", 1], 1)


@pytest.mark.parametrize("type_", HANDLERS)
async def test_a_sleep_that_is_first_ends_both_waits(type_: str) -> None:
    job = await played(type_, DAY, None)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, ["day", 1], 1)


@pytest.mark.parametrize("type_", HANDLERS)
async def test_where_both_are_over_no_time_is_lost(type_: str) -> None:
    async with FakeCluster(app) as cluster:
        job = await cluster.submit(type_, DAY)
        await cluster.run_until(lambda: bool(job.status.waiting))
        await job.suspend()
        await cluster.advance(DAY)
        await job.signal("go", None, sent_by="ada")
        await job.resume()
        await cluster.run_until_idle()
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, ["day", 1], 1)


@pytest.mark.parametrize(("seconds", "first"), [(3600.0, "told"), (0.0, "kids")])
async def test_children_beside_a_signal_are_given_up_once_it_is_there(
    seconds: float, first: str
) -> None:
    """Else the sleep after it would be woken again and again by children that are over."""

    async def tell_then_wait(job: FakeJob) -> None:
        kinds = sorted(one.kind for one in job.status.waiting or [])
        if first == "told":
            assert kinds == ["Children", "Signal"]
            await job.signal("go", None, sent_by="ada")

    job = await played("children", seconds, tell_then_wait)
    assert (job.phase, job.result) == (Phase.SUCCEEDED, [first, 1])
    assert job.status.parks == (2 if first == "told" else 1)


@app.handler("short-limit")
async def short_limit(job: JobContext, seconds: float) -> str:
    kid = await job.submit("leaf", seconds)
    try:
        return await first_of(kid=kid.wait(timeout=1.0), told=job.signal("go"))
    except TimeoutError:
        return "late"


async def test_a_short_limit_of_a_wait_for_children_is_over_before_the_job_parks() -> None:
    job = await played("short-limit", 3600.0, None)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "late", 0)


@app.handler("step-or-day")
async def step_or_day(job: JobContext, _: object) -> str:
    async def body() -> None:
        await asyncio.sleep(600)

    return await first_of(step=job.step("slow", body), day=job.sleep("day", days=1))


async def test_a_step_that_is_done_before_a_sleep_ends_both() -> None:
    job = await played("step-or-day", 0.0, None)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "step", 0)


@app.handler("same-children")
async def same_children(job: JobContext, seconds: float) -> str:
    kid = await job.submit("leaf", seconds)
    dropped = asyncio.ensure_future(kid.wait())
    kept = asyncio.ensure_future(kid.wait())
    await asyncio.sleep(0.1)
    dropped.cancel()
    return f"{(await kept).result}"


async def test_a_wait_that_is_cancelled_takes_nothing_from_another_for_the_same() -> None:
    job = await played("same-children", 60.0, None)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "60.0", 1)


@app.handler("both")
async def both(job: JobContext, _: object) -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(_awaited(job.sleep("day", days=1)))
        told = group.create_task(_awaited(job.signal("go")))
    return str(told.result())


async def _awaited(call: Awaitable[Any]) -> Any:
    return await call


async def test_a_task_group_that_ends_because_of_the_park_gives_nothing_up() -> None:
    async def look(job: FakeJob) -> None:
        assert sorted(one.kind for one in job.status.waiting or []) == ["Signal", "Sleep"]
        await job.signal("go", "now", sent_by="ada")

    job = await played("both", 0.0, look)
    assert (job.phase, job.result, job.status.parks) == (Phase.SUCCEEDED, "now", 2)
