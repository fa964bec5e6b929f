"""Fake time for handlers, real time for everybody else."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvloop

from asyncjob import JobContext, WorkerApp
from asyncjob.testing import FakeCluster, run_handler

app = WorkerApp()


@app.handler("nap")
async def nap(job: JobContext, payload: float) -> float:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await asyncio.sleep(payload)
    return loop.time() - begun


@app.handler("in-parallel")
async def in_parallel(job: JobContext) -> float:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.TaskGroup() as group:
        for seconds in (10, 300, 20):
            group.create_task(asyncio.sleep(seconds))
    return loop.time() - begun


@app.handler("limits-itself")
async def limits_itself(job: JobContext) -> str:
    try:
        async with asyncio.timeout(5):
            await asyncio.sleep(100)
    except TimeoutError:
        return "timed out"
    return "slept"


@app.handler("really-works")
async def really_works(job: JobContext) -> str:
    async with asyncio.timeout(0.001):
        await asyncio.to_thread(time.sleep, 0.05)
    await asyncio.sleep(1000)
    return "worked"


@app.handler("waits-for")
async def waits_for(job: JobContext) -> str:
    return await asyncio.wait_for(asyncio.to_thread(lambda: "answered"), timeout=0.001)


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(app) as running:
        yield running


@pytest.mark.parametrize("seconds", [0, 0.001, 0.1, 3.3, 1799.9])
async def test_a_sleep_takes_its_time_on_the_fake_clock_alone(seconds: float) -> None:
    begun = time.monotonic()
    run = await run_handler(app, "nap", seconds)
    assert run.result == pytest.approx(seconds)
    assert run.clock.elapsed == pytest.approx(seconds)
    assert time.monotonic() - begun < 1.0


async def test_sleeps_side_by_side_take_as_long_as_the_longest() -> None:
    assert (await run_handler(app, "in-parallel")).result == 300


async def test_a_timeout_around_a_sleep_fires_in_its_time() -> None:
    run = await run_handler(app, "limits-itself")
    assert (run.result, run.clock.elapsed) == ("timed out", 5)


async def test_a_timeout_around_real_work_does_not_fire() -> None:
    run = await run_handler(app, "really-works")
    assert (run.result, run.clock.elapsed) == ("worked", 1000)
    assert (await run_handler(app, "waits-for")).result == "answered"


async def test_the_test_itself_keeps_real_time(cluster: FakeCluster) -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    job = await cluster.submit("nap", 1000)
    await cluster.run_until_idle()
    await asyncio.sleep(0.001)
    assert job.result == 1000
    assert 0.001 <= loop.time() - before < 100


async def test_the_loop_is_left_as_it_was() -> None:
    loop = asyncio.get_running_loop()
    names = ("time", "call_later", "call_at")
    before = [getattr(loop, name) for name in names]
    async with FakeCluster(app), FakeCluster(app):
        assert [getattr(loop, name) for name in names] != before
    assert [getattr(loop, name) for name in names] == before


def test_the_event_loop_of_workers_will_do() -> None:
    async def main() -> tuple[object, float]:
        run = await run_handler(app, "limits-itself")
        return run.result, run.clock.elapsed

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) == ("timed out", 5)


async def test_two_clusters_have_two_clocks(cluster: FakeCluster) -> None:
    async with FakeCluster(app) as other:
        await cluster.submit("nap", 7)
        await other.submit("nap", 9)
        await cluster.run_until_idle()
        await other.run_until_idle()
    assert (cluster.clock.elapsed, other.clock.elapsed) == (7, 9)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_clusters_of_one_loop_come_and_go_in_any_order(run: Any) -> None:
    async def overlapping() -> list[Any]:
        loop = asyncio.get_running_loop()
        first, second = FakeCluster(app), FakeCluster(app)
        await first.__aenter__()
        await second.__aenter__()
        await first.__aexit__(None, None, None)
        job = await second.submit("nap", 900)
        await second.run_until_idle()
        await second.__aexit__(None, None, None)
        assert abs(loop.time() - time.monotonic()) < 60
        return [job.result]

    async def together() -> list[Any]:
        return [(await call).result for call in [run_handler(app, "nap", 9.0) for _ in "ab"]]

    async def gathered() -> list[Any]:
        runs = await asyncio.gather(*(run_handler(app, "nap", float(n)) for n in (3, 1, 2)))
        return [one.result for one in runs]

    assert run(overlapping()) == [900]
    assert run(together()) == [9, 9]
    assert run(gathered()) == [3, 1, 2]
