"""Runs one handler until it ends, or until it was asked to stop and is killed or abandoned.

The handler runs with its resources and inside its app's middleware. `isolation.executor` starts it
in the event loop, in a thread or in a process.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from asyncjob.app import Handler, Isolation, JobContext, Resources, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.app.errors import HandlerExitError
from asyncjob.app.handler import Middleware, wrap_in_middleware
from asyncjob_worker.clock import boottime
from asyncjob_worker.isolation.executor import (
    HandlerExecutor,
    HandlerFuture,
    HandlerStarter,
    RunningHandler,
)
from asyncjob_worker.leases.held_job import FENCED_SECONDS, HeldJob

log = structlog.get_logger()

KILL_SECONDS = 5.0
"""How long a killed process may take to be gone."""

_CANCELS = frozenset({Stop.CANCELLED, Stop.PAST_DEADLINE})
"""Stops after which the job is cancelled, and its handler has the grace period of a cancel."""

_IN_THIS_PROCESS = frozenset({Isolation.LOOP, Isolation.THREAD})
"""Isolation levels at which a handler uses this process's open resources."""


class HandlerStopped(Exception):  # noqa: N818  # an end, not an error
    """The handler was asked to stop, and did, or was abandoned (`future` then still runs)."""

    def __init__(self, why: Stop, future: HandlerFuture | None) -> None:
        super().__init__(why.value)
        self.why = why
        self.future = future


class HandlerTask:
    """One attempt's handler. `starter` starts it; `on_start` then gets its future.

    A handler may be stopped from any thread by `HeldJob.stop`. What it returns or raises after that
    no longer counts, because a handler that notices the stop is expected to return early.
    """

    def __init__(
        self,
        held: HeldJob,
        context: JobContext,
        starter: HandlerStarter,
        on_start: Callable[[HandlerFuture], None],
    ) -> None:
        self._held = held
        self._context = context
        self._starter = starter
        self._on_start = on_start
        self._loop = asyncio.get_running_loop()
        self._wakeup = asyncio.Event()

    async def run(self, handler: Handler, payload: object, stop_grace_seconds: float) -> object:
        """Return the handler's result; raises what the handler raises, or HandlerStopped.

        A handler that was asked to stop gets `stop_grace_seconds` before it is killed, if it can
        be, or abandoned; the job's own grace period if the job is to be cancelled; and at most
        FENCED_SECONDS before it is killed if the job is fenced. A handler that is stopped
        beforehand is never started.
        """
        with self._held.reacting(self._on_stop):
            self._held.fence_if_expired()
            if self._held.stopped is not None:
                raise HandlerStopped(self._held.stopped, None)
            started = self._starter.start(handler, self._context, payload)
            with self._held.killable(started.kill_threadsafe):
                self._on_start(started.future)
                await self._wait_until_over(started)
                if self._held.stopped is not None:
                    raise await self._stop(started, stop_grace_seconds)
        if started.future.cancelled():
            raise HandlerExitError("the handler cancelled itself")
        return started.future.result()

    async def _wait_until_over(self, started: RunningHandler) -> None:
        started.future.add_done_callback(self._wake)
        seconds_left = self._held.ends_at - boottime()
        timer = self._loop.call_later(seconds_left, self._held.stop_at_end)
        try:
            await self._wakeup.wait()
        except asyncio.CancelledError:
            _interrupt(started)
            raise
        finally:
            timer.cancel()

    async def _stop(self, started: RunningHandler, stop_grace_seconds: float) -> HandlerStopped:
        _interrupt(started)
        await self._wait_for_stop(started, stop_grace_seconds)
        if not started.future.done() and started.kill is not None:
            log.warning("handler ignores the stop and is killed", job=self._held.job.name)
            started.kill()
            await asyncio.wait({started.future}, timeout=KILL_SECONDS)
        why = self._held.stopped or Stop.DRAINING
        if started.future.done():
            return HandlerStopped(why, None)
        log.error("handler ignores the stop and is abandoned", job=self._held.job.name, why=why)
        return HandlerStopped(why, started.future)

    async def _wait_for_stop(self, started: RunningHandler, stop_grace_seconds: float) -> None:
        """Wait for a handler that was asked to stop; a new reason may change its time."""
        stopped_at = boottime()
        while not started.future.done():
            deadline = stopped_at + self._stop_grace(started, stop_grace_seconds)
            self._wakeup.clear()
            try:
                async with asyncio.timeout(deadline - boottime()):
                    await self._wakeup.wait()
            except TimeoutError:
                return

    def _stop_grace(self, started: RunningHandler, stop_grace_seconds: float) -> float:
        """Return how many seconds the handler gets to stop, by the reason as it is now."""
        if self._held.stopped is Stop.FENCED and started.kill is not None:
            return min(stop_grace_seconds, FENCED_SECONDS)
        return self._cancel_grace() if self._held.stopped in _CANCELS else stop_grace_seconds

    def _cancel_grace(self) -> float:
        """Return the job's grace period less the time to write the outcome.

        When the grace period ends, the operator cancels the job itself.
        """
        grace = self._held.cancel_grace
        return max(grace - 1.0, grace / 2)

    def _on_stop(self) -> None:
        """Wake `run`, from any thread: the handler is to stop, perhaps for a new reason."""
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self, _: HandlerFuture | None = None) -> None:
        self._wakeup.set()


def _interrupt(started: RunningHandler) -> None:
    started.future.add_done_callback(_consume_error)
    started.interrupt()


def _consume_error(future: HandlerFuture) -> None:
    """Retrieve an error that no longer counts, or asyncio logs it as never retrieved."""
    if not future.cancelled():
        future.exception()


@dataclass(frozen=True, slots=True)
class MiddlewareStarter:
    """Starts the handlers of one app with their resources and inside the app's middleware."""

    app: WorkerApp
    executor: HandlerExecutor
    resources: Resources

    def start(self, handler: Handler, context: JobContext, payload: object) -> RunningHandler:
        """Start a handler; call it in the event loop."""
        if handler.needs and handler.isolation in _IN_THIS_PROCESS:
            arguments = self.resources.arguments(handler.needs)
            handler = replace(handler, function=partial(handler.function, **arguments))
        layers = self.app.middleware_of(handler)
        if not layers:
            return self.executor.start(handler, context, payload)
        return self._start_in_middleware(layers, handler, context, payload)

    def _start_in_middleware(
        self, layers: Sequence[Middleware], handler: Handler, context: JobContext, payload: object
    ) -> RunningHandler:
        inner = _InnerHandler(self.executor, handler, context, payload)
        call = wrap_in_middleware(layers, context, self.resources, inner.run)

        async def run(_: JobContext) -> object:
            return await call()

        wrapped = replace(handler, function=run, isolation=Isolation.LOOP, takes_payload=False)
        started = self.executor.start(wrapped, context, None)
        if handler.isolation in _IN_THIS_PROCESS:
            return started
        return replace(started, kill=inner.kill, kill_threadsafe=inner.kill_threadsafe)


class _InnerHandler:
    """The handler inside its middleware."""

    def __init__(
        self, executor: HandlerExecutor, handler: Handler, context: JobContext, payload: object
    ) -> None:
        self._executor = executor
        self._handler = handler
        self._context = context
        self._payload = payload
        self._started: RunningHandler | None = None

    async def run(self) -> object:
        """Run the handler and return its result; does not end before the handler has.

        An async handler runs in the task of its middleware, and so shares its context variables and
        cancel scopes.
        """
        handler = self._handler
        if handler.isolation is Isolation.LOOP:
            arguments = (
                (self._context, self._payload) if handler.takes_payload else (self._context,)
            )
            result: object = await handler.function(*arguments)
            return result
        self._started = self._executor.start(handler, self._context, self._payload)
        try:
            return await _wait_until_done(self._started)
        except HandlerExitError as error:
            if error.is_cancellation:  # as an async handler's: no Exception to a middleware
                raise asyncio.CancelledError(str(error)) from error
            raise

    def kill(self) -> None:
        """Kill the handler, if it runs where that is possible."""
        if self._started is not None and self._started.kill is not None:
            self._started.kill()

    def kill_threadsafe(self) -> None:
        """Kill the handler from any thread, if it runs where that is possible."""
        if self._started is not None and self._started.kill_threadsafe is not None:
            self._started.kill_threadsafe()


async def _wait_until_done(started: RunningHandler) -> object:
    """Wait for a handler in a thread or process, which a cancellation only asks to stop.

    A middleware's own time limit, for example, cancels it.
    """
    future: HandlerFuture = started.future
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
            started.interrupt()
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # no longer counts
        raise cancelled
    return future.result()
