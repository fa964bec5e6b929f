"""Waits for something other than the handler, for as long as the attempt lives."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from asyncjob.app.stop import Stop
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob

T = TypeVar("T")


class AttemptStopped(Exception):  # noqa: N818  # an end, not an error
    """The attempt was told to stop meanwhile; `detail` is what kept it waiting."""

    def __init__(self, why: Stop, detail: str = "") -> None:
        super().__init__(why.value)
        self.why = why
        self.detail = detail


async def run_unless_stopped(
    held: HeldJob, work: Coroutine[Any, Any, T], *, drain_grace: float = 0.0
) -> T:
    """Return what the work returns; cancels it and raises Interrupted once the attempt is to stop.

    A worker that drains gives the work `drain_grace` seconds more. The attempt's time limit counts.
    """
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    held.on_stop = lambda: loop.call_soon_threadsafe(over.set)
    timer = loop.call_later(held.times_out_at - lease_seconds(), held.stop, Stop.TIMED_OUT)
    task, stop = asyncio.ensure_future(work), asyncio.ensure_future(over.wait())
    try:
        if held.stopped is None:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if held.stopped is Stop.DRAINING:
            await asyncio.wait({task}, timeout=drain_grace)
        if not task.done():
            raise AttemptStopped(held.stopped or Stop.DRAINING)
        return task.result()
    finally:
        held.on_stop = None
        timer.cancel()
        task.cancel()
        stop.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)
