"""Runs one handler until it ends, or has been told to stop and given up on."""

import asyncio
from collections.abc import Callable

import structlog

from asyncjob.app import Handler, JobContext
from asyncjob.app.stop import Stop
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob
from asyncjob_worker.starts import HandlerExitError, Started, Starter, Work

log = structlog.get_logger()


class Stopped(Exception):  # noqa: N818  # an end, not an error
    """The handler was told to stop, and did, or was abandoned (`work` then still runs)."""

    def __init__(self, why: Stop, work: Work | None) -> None:
        super().__init__(why.value)
        self.why = why
        self.work = work


class Execution:
    """One attempt's handler at work. `starts` starts it; `on_start` is given the work.

    A handler may be stopped from any thread by `HeldJob.stop`; what it returns or raises after that
    no longer counts, because a handler that notices the stop is expected to return early.
    """

    def __init__(
        self,
        held: HeldJob,
        context: JobContext,
        starts: Starter,
        on_start: Callable[[Work], None] = lambda _: None,
    ) -> None:
        self._held = held
        self._context = context
        self._starts = starts
        self._on_start = on_start
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()

    async def run(self, handler: Handler, payload: object, stop_wait: float) -> object:
        """Return the handler's result; raises what it raises, or Stopped.

        A handler that was told to stop gets `stop_wait` seconds before it is abandoned, or the
        job's own grace if it was cancelled. One that is stopped beforehand is never started.
        """
        self._held.on_stop = self._tell
        try:
            if self._held.stopped is not None:
                raise Stopped(self._held.stopped, None)
            started = self._starts.start(handler, self._context, payload)
            work = started.work
            self._on_start(work)
            await self._until_over(started)
            if self._held.stopped is not None:
                raise await self._stopped(started, stop_wait)
        finally:
            self._held.on_stop = None
        if work.cancelled():
            raise HandlerExitError("the handler cancelled itself")
        return work.result()

    async def _until_over(self, started: Started) -> None:
        started.work.add_done_callback(self._finish)
        timer = self._loop.call_later(self._seconds_left(), self._time_out)
        try:
            await self._over
        except asyncio.CancelledError:
            _interrupt(started)
            raise
        finally:
            timer.cancel()

    def _cancel_wait(self) -> float:
        """Return the job's grace but for the time to report, before the operator does."""
        grace = self._held.cancel_grace
        return max(grace - 1.0, grace / 2)

    def _seconds_left(self) -> float:
        return self._held.times_out_at - lease_seconds()

    def _time_out(self) -> None:
        self._held.stop(Stop.TIMED_OUT)

    def _tell(self) -> None:
        """End the wait; called from any thread."""
        self._loop.call_soon_threadsafe(self._finish)

    def _finish(self, _: Work | None = None) -> None:
        if not self._over.done():
            self._over.set_result(None)

    async def _stopped(self, started: Started, stop_wait: float) -> Stopped:
        _interrupt(started)
        cancelled = self._held.stopped is Stop.CANCELLED
        patience = self._cancel_wait() if cancelled else stop_wait
        done, _ = await asyncio.wait({started.work}, timeout=patience)
        if not done and started.kill is not None:
            started.kill()
            await asyncio.wait({started.work})
        why = self._held.stopped or Stop.DRAINING
        if started.work.done():
            return Stopped(why, None)
        log.error("handler ignores the stop and is abandoned", job=self._held.job.name, why=why)
        return Stopped(why, started.work)


def _interrupt(started: Started) -> None:
    started.work.add_done_callback(_retrieve)
    started.interrupt()


def _retrieve(work: Work) -> None:
    """Look at an error that no longer counts, or asyncio would report it as forgotten."""
    if not work.cancelled():
        work.exception()
