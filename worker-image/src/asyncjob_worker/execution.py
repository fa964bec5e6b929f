"""Runs one handler until it ends, or has been told to stop and given up on."""

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.app import Handler, Isolation, JobContext
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob, Stop

log = structlog.get_logger()

Work = asyncio.Future[object]

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


class Stopped(Exception):  # noqa: N818  # an end, not an error
    """The handler was told to stop, and did, or was abandoned (`work` then still runs)."""

    def __init__(self, why: Stop, work: Work | None) -> None:
        super().__init__(why.value)
        self.why = why
        self.work = work


class HandlerExitError(Exception):
    """The handler tried to end the process or its own task."""


class Execution:
    """One attempt's handler at work. `threads` runs sync handlers; `on_start` is given the work.

    A handler may be stopped from any thread by `HeldJob.stop`; what it returns or raises after that
    no longer counts, because a handler that notices the stop is expected to return early.
    """

    def __init__(
        self,
        held: HeldJob,
        context: JobContext,
        threads: concurrent.futures.Executor,
        on_start: Callable[[Work], None] = lambda _: None,
    ) -> None:
        self._held = held
        self._context = context
        self._threads = threads
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
            work = self._start(handler, payload)
            self._on_start(work)
            await self._until_over(handler, work)
            if self._held.stopped is not None:
                raise await self._stopped(handler, work, stop_wait)
        finally:
            self._held.on_stop = None
        if work.cancelled():
            raise HandlerExitError("the handler cancelled itself")
        return work.result()

    async def _until_over(self, handler: Handler, work: Work) -> None:
        work.add_done_callback(self._finish)
        timer = self._loop.call_later(self._seconds_left(), self._time_out)
        try:
            await self._over
        except asyncio.CancelledError:
            self._interrupt(handler, work)
            raise
        finally:
            timer.cancel()

    def _start(self, handler: Handler, payload: object) -> Work:
        arguments = (self._context, payload) if handler.takes_payload else (self._context,)
        if handler.isolation is Isolation.LOOP:
            return self._loop.create_task(_contained(handler.function(*arguments)))
        call = _call(handler.function, arguments)
        return self._loop.run_in_executor(self._threads, contextvars.copy_context().run, call)

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

    def _interrupt(self, handler: Handler, work: Work) -> None:
        """Tell the handler to stop; a thread only sees it, and is not over before it is."""
        self._context.stop()
        work.add_done_callback(_retrieve)
        if handler.isolation is Isolation.LOOP:
            work.cancel()

    async def _stopped(self, handler: Handler, work: Work, stop_wait: float) -> Stopped:
        self._interrupt(handler, work)
        cancelled = self._held.stopped is Stop.CANCELLED
        await asyncio.wait({work}, timeout=self._cancel_wait() if cancelled else stop_wait)
        why = self._held.stopped or Stop.DRAINING
        if work.done():
            return Stopped(why, None)
        log.error("handler ignores the stop and is abandoned", job=self._held.job.name, why=why)
        return Stopped(why, work)


async def _contained(handler: Awaitable[object]) -> object:
    """Keep `sys.exit()` in a handler from ending the worker."""
    try:
        return await handler
    except (SystemExit, KeyboardInterrupt) as error:
        raise HandlerExitError(_exit(error)) from error


def _call(function: Callable[..., object], arguments: tuple[object, ...]) -> Callable[[], object]:
    """Return the call of a sync handler; what a future cannot carry is wrapped."""

    def call() -> object:
        try:
            return function(*arguments)
        except (SystemExit, KeyboardInterrupt, StopIteration, *_CANCELLED) as error:
            raise HandlerExitError(_exit(error)) from error

    return call


def _exit(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the handler called sys.exit({error.code!r})"
    return f"the handler raised {type(error).__name__}"


def _retrieve(work: Work) -> None:
    """Look at an error that no longer counts, or asyncio would report it as forgotten."""
    if not work.cancelled():
        work.exception()
