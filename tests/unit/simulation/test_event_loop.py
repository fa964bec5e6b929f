"""The event loop in virtual time: order, held threads, and ends in mid-air."""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextvars import Context
from functools import partial
from inspect import CORO_CLOSED, getcoroutinestate

import pytest

from asyncjob_simulation.event_loop import FIRST_MOMENT, SimulationLoop, StuckError
from asyncjob_simulation.processes import Process, close_unstarted


def make_loop(seed: int) -> SimulationLoop:
    loop = SimulationLoop(random.Random(seed))
    loop.set_exception_handler(lambda *_: None)  # of tasks that are still waiting at the end
    return loop


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    made = make_loop(7)
    yield made
    made.close()


def sleep(loop: SimulationLoop, seconds: float) -> None:
    loop.run_until_complete(asyncio.sleep(seconds))


def test_hours_pass_at_once(loop: SimulationLoop) -> None:
    sleep(loop, 3600.0)
    assert loop.time() == pytest.approx(FIRST_MOMENT + 3600.0)


def test_a_process_runs_its_callbacks_in_order(loop: SimulationLoop) -> None:
    process, seen = Process("one", loop), list[int]()
    for number in range(20):
        process.call(partial(seen.append, number))
    sleep(loop, 1.0)
    assert seen == list(range(20))


def turns(seed: int) -> list[str]:
    loop, seen = make_loop(seed), list[str]()

    async def count(name: str) -> None:
        for _ in range(10):
            seen.append(name)
            await asyncio.sleep(0)

    for name in ("a", "b", "c"):
        Process(name, loop).spawn(count(name))
    sleep(loop, 1.0)
    loop.close()
    return seen


def test_the_seed_decides_whose_turn_it_is() -> None:
    assert turns(1) == turns(1)
    assert turns(1) != turns(2)
    assert sorted(turns(1)) == sorted(turns(2))


def test_a_held_process_goes_on_where_it_was(loop: SimulationLoop) -> None:
    process, seen = Process("one", loop), list[float]()

    async def tick() -> None:
        while True:
            await asyncio.sleep(1.0)
            seen.append(loop.time() - FIRST_MOMENT)

    process.spawn(tick())
    sleep(loop, 2.5)
    process.hold()
    sleep(loop, 10.0)
    process.release()
    sleep(loop, 1.2)
    assert seen == pytest.approx([1.0, 2.0, 12.5, 13.5], abs=0.001)


def test_a_blocked_thread_leaves_the_others_alone(loop: SimulationLoop) -> None:
    process, seen = Process("one", loop), list[str]()

    async def tick(name: str) -> None:
        while True:
            await asyncio.sleep(1.0)
            seen.append(name)

    process.spawn(tick("main"))
    process.spawn(tick("other"), "other")
    process.block(5.0)
    sleep(loop, 3.5)
    assert seen == ["other"] * 3
    sleep(loop, 3.0)
    assert seen.count("main") == 1


def test_a_killed_process_does_not_even_clean_up(loop: SimulationLoop) -> None:
    process, seen = Process("one", loop), list[str]()

    async def work() -> None:
        try:
            await asyncio.sleep(5.0)
        finally:
            seen.append("cleaned up")

    task = process.spawn(work())
    process.on_death.append(lambda: seen.append("dead"))
    sleep(loop, 1.0)
    process.kill()
    task.cancel()
    sleep(loop, 10.0)
    assert seen == ["dead"]


def test_a_process_can_be_killed_at_any_await(loop: SimulationLoop) -> None:
    process, seen = Process("one", loop), list[int]()

    async def work() -> None:
        for number in range(100):
            seen.append(number)
            await asyncio.sleep(0)

    process.spawn(work())
    process.kill_after(10)
    sleep(loop, 1.0)
    assert not process.is_alive
    assert seen == list(range(10))


def test_what_a_dead_process_waits_for_wakes_nobody(loop: SimulationLoop) -> None:
    process, answer = Process("one", loop), loop.create_future()

    async def wait() -> None:
        await answer
        pytest.fail("a dead process went on")

    process.spawn(wait())
    sleep(loop, 1.0)
    process.kill()
    loop.call_soon(answer.set_result, None, context=Context())
    sleep(loop, 1.0)


def test_callbacks_without_end_are_found(loop: SimulationLoop) -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110  # nothing is waited for
            await asyncio.sleep(0)

    with pytest.raises(StuckError, match="does not stop"):
        loop.run_until_complete(spin())


def test_a_deadlock_is_found(loop: SimulationLoop) -> None:
    async def wait_for_nothing() -> None:
        await loop.create_future()

    with pytest.raises(StuckError, match="nothing is left"):
        loop.run_until_complete(wait_for_nothing())


async def test_closing_what_never_began_leaves_the_end_of_a_generator_alone() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        yield 1

    generator, work = numbers(), asyncio.sleep(0)
    await anext(generator)
    ending, unstarted = asyncio.create_task(generator.aclose()), asyncio.create_task(work)
    close_unstarted([ending, unstarted])
    await ending
    assert getcoroutinestate(work) == CORO_CLOSED
    with pytest.raises(RuntimeError):
        await unstarted
