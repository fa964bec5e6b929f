"""Handlers at work: how long they ran, and whose task has the event loop."""

import asyncio
import concurrent.futures
from collections.abc import Iterator

import pytest

from asyncjob_worker.execution.runner import RunningHandlers
from asyncjob_worker.leases.held_job import HeldJob
from support.parts.callbacks import ignore
from support.parts.worker_parts import held


@pytest.fixture
def thread() -> Iterator[concurrent.futures.Executor]:
    """Make another thread, such as that of the heartbeats."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        yield pool


def at_work() -> RunningHandlers:
    return RunningHandlers(lambda: 0.0, on_end=ignore)


async def test_the_handler_that_blocks_the_loop_is_found_from_another_thread(
    thread: concurrent.futures.Executor,
) -> None:
    handlers, gate = at_work(), asyncio.Event()

    async def block() -> HeldJob | None:
        return thread.submit(handlers.blocking_job).result()

    async def wait() -> None:
        await gate.wait()

    blocker, neighbour = asyncio.create_task(block()), asyncio.create_task(wait())
    handlers.add(neighbour, held(name="neighbour"))  # type: ignore[arg-type]  # of no result
    job = held(name="blocker")
    handlers.add(blocker, job)  # type: ignore[arg-type]  # of another result
    assert await blocker is job
    gate.set()
    await neighbour


async def test_nobody_is_blamed_for_a_task_that_is_no_handlers(
    thread: concurrent.futures.Executor,
) -> None:
    handlers = at_work()

    async def child() -> HeldJob | None:
        return thread.submit(handlers.blocking_job).result()

    async def handler() -> object:
        return await asyncio.create_task(child())

    work = asyncio.create_task(handler())
    assert thread.submit(handlers.blocking_job).result() is None
    handlers.add(work, held())
    assert await work is None


async def test_an_idle_loop_is_in_nobodys_hands(thread: concurrent.futures.Executor) -> None:
    handlers, gate = at_work(), asyncio.Event()
    work: asyncio.Task[object] = asyncio.create_task(gate.wait())
    handlers.add(work, held())
    running = asyncio.get_running_loop()
    assert await running.run_in_executor(thread, handlers.blocking_job) is None
    gate.set()
    await work


async def test_handlers_are_timed_and_forgotten_when_they_end() -> None:
    now, noted = [10.0], list[tuple[str, float]]()
    handlers = RunningHandlers(lambda: now[0], lambda *seen: noted.append(seen))
    work: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    handlers.add(work, held())
    assert handlers.futures == {work}
    now[0] = 12.5
    work.cancel()
    await asyncio.wait({work})
    await asyncio.sleep(0)
    assert (handlers.futures, noted) == (set(), [("echo", 2.5)])
