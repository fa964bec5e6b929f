"""Starts a handler with its resources, inside its app's middleware.

How a handler itself is started, and how its end is reported, is not its concern.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from asyncjob.app import Handler, Isolation, JobContext, Resources, WorkerApp
from asyncjob.app.middleware import Middleware, wrap_in_middleware
from asyncjob_worker.starts import HandlerExecutor, HandlerFuture, RunningHandler

_IN_THIS_PROCESS = frozenset({Isolation.LOOP, Isolation.THREAD})
"""Where a handler shares this process, and with it the open resources."""


@dataclass(frozen=True, slots=True)
class MiddlewareStarter:
    """What surrounds the handlers of one app."""

    app: WorkerApp
    executor: HandlerExecutor
    resources: Resources

    def start(self, handler: Handler, context: JobContext, payload: object) -> RunningHandler:
        """Start a handler in the running event loop's care."""
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
        core = _InnerHandler(self.executor, handler, context, payload)
        call = wrap_in_middleware(layers, context, self.resources, core.run)

        async def run(_: JobContext) -> object:
            return await call()

        around = replace(handler, function=run, isolation=Isolation.LOOP, takes_payload=False)
        started = self.executor.start(around, context, None)
        return (
            started
            if handler.isolation in _IN_THIS_PROCESS
            else replace(started, kill=core.kill, kill_threadsafe=core.kill_threadsafe)
        )


class _InnerHandler:
    """The handler within its middleware."""

    def __init__(
        self, executor: HandlerExecutor, handler: Handler, context: JobContext, payload: object
    ) -> None:
        self._executor = executor
        self._handler = handler
        self._context = context
        self._payload = payload
        self._started: RunningHandler | None = None

    async def run(self) -> object:
        """Return what the handler returns; not over before the handler is.

        What is async runs in the task of its middleware, so that their context variables and
        cancel scopes are its own.
        """
        handler = self._handler
        if handler.isolation is Isolation.LOOP:
            given = (self._context, self._payload) if handler.takes_payload else (self._context,)
            result: object = await handler.function(*given)
            return result
        self._started = self._executor.start(handler, self._context, self._payload)
        return await _wait_until_done(self._started)

    def kill(self) -> None:
        """Kill the handler, if it runs where that is possible."""
        if self._started is not None and self._started.kill is not None:
            self._started.kill()

    def kill_threadsafe(self) -> None:
        """Kill the handler from any thread, if it runs where that is possible."""
        if self._started is not None and self._started.kill_threadsafe is not None:
            self._started.kill_threadsafe()


async def _wait_until_done(started: RunningHandler) -> object:
    """Wait for a handler that a middleware's own time limit cannot end, only tell to stop."""
    work: HandlerFuture = started.future
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as error:
            cancelled = error
            started.interrupt()
    if cancelled is not None:
        if not work.cancelled():
            work.exception()  # no longer counts
        raise cancelled
    return work.result()
