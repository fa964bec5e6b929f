"""Runs one handler until it ends, or has been told to stop and given up on."""

import asyncio
from collections.abc import Callable

import structlog

from asyncjob.app import Handler, JobContext
from asyncjob.app.stop import Stop
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import FENCED_SECONDS, HeldJob
from asyncjob_worker.starts import HandlerExitError, HandlerFuture, HandlerStarter, RunningHandler

log = structlog.get_logger()

KILL_SECONDS = 5.0
"""How long a killed process may take to be gone."""


class HandlerStopped(Exception):  # noqa: N818  # an end, not an error
    """The handler was told to stop, and did, or was abandoned (`future` then still runs)."""

    def __init__(self, why: Stop, future: HandlerFuture | None) -> None:
        super().__init__(why.value)
        self.why = why
        self.future = future


class HandlerTask:
    """One attempt's handler at work. `starter` starts it; `on_start` is given the work.

    A handler may be stopped from any thread by `HeldJob.stop`; what it returns or raises after that
    no longer counts, because a handler that notices the stop is expected to return early.
    """

    def __init__(
        self,
        held: HeldJob,
        context: JobContext,
        starter: HandlerStarter,
        on_start: Callable[[HandlerFuture], None] = lambda _: None,
    ) -> None:
        self._held = held
        self._context = context
        self._starter = starter
        self._on_start = on_start
        self._loop = asyncio.get_running_loop()
        self._wakeup = asyncio.Event()

    async def run(self, handler: Handler, payload: object, stop_wait: float) -> object:
        """Return the handler's result; raises what it raises, or Stopped.

        A handler that was told to stop gets `stop_wait` seconds before it is killed, if it can be,
        or abandoned; the job's own grace if it was cancelled; and next to none before it is killed
        if another may run the job. One that is stopped beforehand is never started.
        """
        self._held.on_stop = self._on_stop
        try:
            self._held.fence_if_expired()
            if self._held.stopped is not None:
                raise HandlerStopped(self._held.stopped, None)
            started = self._starter.start(handler, self._context, payload)
            work, self._held.on_fenced = started.future, started.kill_threadsafe
            self._on_start(work)
            await self._wait_until_over(started)
            if self._held.stopped is not None:
                raise await self._stop(started, stop_wait)
        finally:
            self._held.on_stop = self._held.on_fenced = None
        if work.cancelled():
            raise HandlerExitError("the handler cancelled itself")
        return work.result()

    async def _wait_until_over(self, started: RunningHandler) -> None:
        started.future.add_done_callback(self._wake)
        timer = self._loop.call_later(self._seconds_left(), self._time_out)
        try:
            await self._wakeup.wait()
        except asyncio.CancelledError:
            _interrupt(started)
            raise
        finally:
            timer.cancel()

    def _stop_grace(self, started: RunningHandler, stop_wait: float) -> float:
        """Return how long a handler may take to stop, in seconds."""
        if self._held.stopped is Stop.FENCED and started.kill is not None:
            return min(stop_wait, FENCED_SECONDS)
        return self._cancel_grace() if self._held.stopped is Stop.CANCELLED else stop_wait

    def _cancel_grace(self) -> float:
        """Return the job's grace but for the time to report, before the operator does."""
        grace = self._held.cancel_grace
        return max(grace - 1.0, grace / 2)

    def _seconds_left(self) -> float:
        return self._held.times_out_at - lease_seconds()

    def _time_out(self) -> None:
        self._held.stop(Stop.TIMED_OUT)

    def _on_stop(self) -> None:
        """End the wait, or look at the new reason; called from any thread."""
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self, _: HandlerFuture | None = None) -> None:
        self._wakeup.set()

    async def _wait_for_stop(self, started: RunningHandler, stop_wait: float) -> None:
        """Wait for a handler that was told to stop; a higher reason may shorten its time."""
        told_at = lease_seconds()
        while not started.future.done():
            until = told_at + self._stop_grace(started, stop_wait)
            self._wakeup.clear()
            try:
                async with asyncio.timeout(until - lease_seconds()):
                    await self._wakeup.wait()
            except TimeoutError:
                return

    async def _stop(self, started: RunningHandler, stop_wait: float) -> HandlerStopped:
        _interrupt(started)
        await self._wait_for_stop(started, stop_wait)
        if not started.future.done() and started.kill is not None:
            log.warning("handler ignores the stop and is killed", job=self._held.job.name)
            started.kill()
            await asyncio.wait({started.future}, timeout=KILL_SECONDS)
        why = self._held.stopped or Stop.DRAINING
        if started.future.done():
            return HandlerStopped(why, None)
        log.error("handler ignores the stop and is abandoned", job=self._held.job.name, why=why)
        return HandlerStopped(why, started.future)


def _interrupt(started: RunningHandler) -> None:
    started.future.add_done_callback(_consume_error)
    started.interrupt()


def _consume_error(future: HandlerFuture) -> None:
    """Look at an error that no longer counts, or asyncio would report it as forgotten."""
    if not future.cancelled():
        future.exception()
