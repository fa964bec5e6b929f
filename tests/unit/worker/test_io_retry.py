"""Waiting for something other than the handler, for as long as the attempt lives."""

import asyncio
from typing import Any

import pytest

from asyncjob.app.context import Stop
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.io_retry import AttemptStopped, run_unless_stopped
from asyncjob_worker.leases.held_job import HeldJob, no_reaction
from support.parts.worker_parts import held


class Never:
    """Work that never ends, and knows whether it was cancelled."""

    cancelled = False

    async def work(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def interrupted(job: HeldJob, **more: Any) -> Stop:
    never = Never()
    with pytest.raises(AttemptStopped) as end:
        await run_unless_stopped(job, never.work(), **more)
    assert never.cancelled or end.value.why is Stop.CANCELLED
    assert job._on_stop is no_reaction
    return end.value.why


async def test_what_the_work_returns_and_raises_comes_back() -> None:
    async def seven() -> int:
        return 7

    async def fails() -> None:
        raise ZeroDivisionError

    assert await run_unless_stopped(held(), seven()) == 7
    with pytest.raises(ZeroDivisionError):
        await run_unless_stopped(held(), fails())


async def test_one_that_is_stopped_beforehand_does_not_wait() -> None:
    job = held()
    job.stop(Stop.CANCELLED)
    assert await interrupted(job) is Stop.CANCELLED


async def test_the_time_limit_of_the_attempt_counts() -> None:
    job = held(sent_at=boottime() - 1801)
    assert await interrupted(job) is Stop.TIMED_OUT


async def test_a_stop_from_another_thread_ends_the_wait() -> None:
    job = held()
    asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(_stop_in_a_thread(job)))
    assert await interrupted(job) is Stop.FENCED


async def _stop_in_a_thread(job: HeldJob) -> None:
    await asyncio.to_thread(job.stop, Stop.FENCED)


async def test_who_waits_may_be_cancelled() -> None:
    never = Never()
    waiting = asyncio.ensure_future(run_unless_stopped(held(), never.work()))
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert never.cancelled
