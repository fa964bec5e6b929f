"""A handler that goes on with whichever wait is over first, in virtual time.

Operator and worker are the real ones; the API server in memory enforces the rules.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from asyncjob import JobContext, WorkerApp
from asyncjob_simulation.handlers import HandlerCalls
from asyncjob_simulation.quiet_cluster import Object, QuietCluster
from support.driven.waiting_jobs import change, over, parked, played, send, stored, until

DAY: Final = 7200.0
"""What is a day to these jobs: each second of it is simulated."""


async def first_of(**waits: Awaitable[Any]) -> str:
    tasks = {name: asyncio.ensure_future(wait) for name, wait in waits.items()}
    done, pending = await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    for one in pending:
        one.cancel()
    return next(name for name, task in tasks.items() if task in done)


async def noted(name: str) -> str:
    return name


async def leaf(_: JobContext, seconds: float) -> None:
    await asyncio.sleep(seconds)


async def day_first(job: JobContext, seconds: float) -> str:
    first = await first_of(day=job.sleep("day", seconds=seconds), told=job.signal("go"))
    return await job.step("note", noted, first)


async def told_first(job: JobContext, seconds: float) -> str:
    first = await first_of(told=job.signal("go"), day=job.sleep("day", seconds=seconds))
    return await job.step("note", noted, first)


async def children(job: JobContext, seconds: float) -> str:
    kids = [await job.submit("leaf", seconds, key=str(number)) for number in range(2)]
    first = await first_of(kids=job.gather(*kids), told=job.signal("go"))
    first = await job.step("note", noted, first)
    await job.sleep("later", hours=2)
    return first


def app(_: HandlerCalls) -> WorkerApp:
    app = WorkerApp()
    for handler in (leaf, day_first, told_first, children):
        app.handler(handler.__name__.replace("_", "-"))(handler)
    return app


HANDLERS: Final = ["day-first", "told-first"]


def ended(
    type_: str, payload: float, act: Callable[[QuietCluster], Awaitable[object]] | None
) -> Object:
    """Return the status of the job at its end; something may be done once it is parked."""

    async def story(cluster: QuietCluster) -> Object:
        cluster.submit("job", type_, payload=payload)
        if act is not None:
            await until(cluster, parked)
            await act(cluster)
        return await until(cluster, over, within=4 * DAY, step=10)

    return played(app, story)


async def tell(cluster: QuietCluster) -> None:
    waiting = {(one["kind"], one["key"]) for one in stored(cluster)["waiting"]}
    assert waiting == {("Signal", "go"), ("Sleep", "day")}
    assert send(cluster)


@pytest.mark.parametrize("type_", HANDLERS)
def test_a_signal_that_is_first_ends_both_waits(type_: str) -> None:
    end = ended(type_, DAY, tell)
    assert (end["phase"], end.get("result"), end.get("parks", 0)) == ("Succeeded", "told", 1)


@pytest.mark.parametrize("type_", HANDLERS)
def test_a_sleep_that_is_first_ends_both_waits(type_: str) -> None:
    end = ended(type_, DAY, None)
    assert (end["phase"], end.get("result"), end.get("parks", 0)) == ("Succeeded", "day", 1)


@pytest.mark.parametrize("type_", HANDLERS)
def test_where_both_are_over_no_time_is_lost(type_: str) -> None:
    async def both(cluster: QuietCluster) -> None:
        assert change(cluster, suspend=True)
        await asyncio.sleep(2 * DAY)
        assert send(cluster)
        assert change(cluster, suspend=False)

    end = ended(type_, DAY, both)
    assert (end["phase"], end.get("parks", 0)) == ("Succeeded", 1)


@pytest.mark.parametrize("type_", HANDLERS)
def test_a_sleep_that_keeps_its_slot_holds_up_the_park_of_another(type_: str) -> None:
    """A park for the other alone would not be woken by what was to be over in a second."""
    end = ended(type_, 1.0, None)
    assert (end["phase"], end.get("result"), end.get("parks", 0)) == ("Succeeded", "day", 0)


def test_children_that_are_given_up_do_not_wake_the_job_again_and_again() -> None:
    async def told(cluster: QuietCluster) -> None:
        kinds = sorted(one["kind"] for one in stored(cluster)["waiting"])
        assert kinds == ["Children", "Signal"]
        assert send(cluster)

    end = ended("children", 600.0, told)
    assert (end["phase"], end.get("result"), end.get("parks", 0)) == ("Succeeded", "told", 2)
