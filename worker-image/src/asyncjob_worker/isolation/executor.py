"""Starts handlers at their isolation level: in the event loop, in a thread, or in a process.

It also keeps handlers that call `sys.exit()` from ending the process.
"""

import asyncio
import concurrent.futures
import contextvars
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from asyncjob.app import Handler, Isolation, JobContext
from asyncjob.app.errors import HandlerExitError
from asyncjob.errors import ConfigError
from asyncjob_worker.isolation.pool import ProcessPool
from asyncjob_worker.isolation.process_execution import ProcessExecution
from asyncjob_worker.isolation.protocol import ProcessConfig
from asyncjob_worker.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

HandlerFuture = asyncio.Future[object]

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


@dataclass(frozen=True, slots=True)
class RunningHandler:
    """A handler that has been started."""

    future: HandlerFuture
    interrupt: Callable[[], object]
    """Asks the handler to stop."""

    kill: Callable[[], object] | None = None
    """Kills the handler; None where that cannot be done."""

    kill_threadsafe: Callable[[], object] | None = None
    """Kills it from any thread, for when the event loop is blocked; None where that cannot be."""


class HandlerStarter(Protocol):
    """Starts handlers: `HandlerExecutor`, and what wraps it in middleware."""

    def start(self, handler: Handler, context: JobContext, payload: object) -> RunningHandler:
        """Start a handler; call it in the event loop."""


class HandlerExecutor:
    """Starts the handlers of one worker process.

    `threads` is the greatest number that run in threads; `process_pool` has the processes for those
    that need one.
    """

    def __init__(self, threads: int, process_pool: ProcessPool | None = None) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, "handler")
        self._loop_threads: LoopThreads | None = None
        self._process_pool = process_pool

    @classmethod
    def from_settings(cls, settings: Settings) -> "HandlerExecutor":
        """Return the executor of a worker process with these settings."""
        config = ProcessConfig(
            settings.app, list(sys.path), settings.log_format, settings.max_free_json
        )
        pool = ProcessPool(config, settings.slots(), jobs_per_process=settings.jobs_per_process)
        return cls(settings.slots(), pool)

    def start(self, handler: Handler, context: JobContext, payload: object) -> RunningHandler:
        """Start a handler; call it in the event loop."""
        if handler.isolation is Isolation.PROCESS:
            return self._start_process(handler, context, payload)
        arguments = (context, payload) if handler.takes_payload else (context,)
        if handler.isolation is Isolation.LOOP:
            if self._loop_threads is None:
                self._loop_threads = LoopThreads(thread_name_prefix="asyncio")
                asyncio.get_running_loop().set_default_executor(self._loop_threads)
            return _start_task(handler, context, arguments)
        return self._start_thread(handler, context, arguments)

    async def end_processes(self) -> None:
        """End the processes: idle ones are asked to, the others killed."""
        if self._process_pool is not None:
            await self._process_pool.close()

    def close(self) -> None:
        """Release the threads, without waiting for handlers that never end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start_process(
        self, handler: Handler, context: JobContext, payload: object
    ) -> RunningHandler:
        if self._process_pool is None:
            raise ConfigError(f"handler {handler.type!r} needs a process, and there are none here")
        execution = ProcessExecution(self._process_pool, handler, context, payload)
        task = asyncio.get_running_loop().create_task(execution.run())

        def interrupt() -> None:
            context.stop()
            if not execution.stop():
                task.cancel()

        def kill() -> None:
            if not execution.kill():
                task.cancel()

        return RunningHandler(task, interrupt, kill, execution.kill_process)

    def _start_thread(
        self, handler: Handler, context: JobContext, arguments: tuple[object, ...]
    ) -> RunningHandler:
        call = guarded_call(handler.function, arguments)
        run = contextvars.copy_context().run
        future = asyncio.get_running_loop().run_in_executor(self._threads, run, call)
        # A thread can only be asked to stop; its future is done when the handler has returned.
        return RunningHandler(future, context.stop)


def _start_task(
    handler: Handler, context: JobContext, arguments: tuple[object, ...]
) -> RunningHandler:
    threads = AttemptThreads()
    interrupted = False

    async def run() -> object:
        _ATTEMPT_THREADS.set(threads)  # in the task's own context, which its tasks inherit
        try:
            return await handler.function(*arguments)
        except (SystemExit, KeyboardInterrupt) as error:  # not for a handler to end the process by
            raise HandlerExitError(_exit_message(error)) from error
        finally:
            # Another attempt must not begin beside a thread that nobody can end.
            if interrupted:
                await threads.wait_ended()

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        context.stop()
        task.cancel()

    task = asyncio.get_running_loop().create_task(run())
    return RunningHandler(task, interrupt)


class AttemptThreads:
    """The calls that one async handler, or a task of it, runs by `asyncio.to_thread`."""

    def __init__(self) -> None:
        self._running: set[concurrent.futures.Future[Any]] = set()

    def add(self, call: "concurrent.futures.Future[Any]") -> None:
        """Record a call that is given to a thread."""
        self._running.add(call)
        call.add_done_callback(self._running.discard)

    async def wait_ended(self) -> None:
        """Wait until no call is running."""
        loop = asyncio.get_running_loop()
        while running := next(iter(tuple(self._running)), None):
            ended = asyncio.Event()
            running.add_done_callback(partial(_set_threadsafe, loop, ended))
            await ended.wait()


def _set_threadsafe(loop: asyncio.AbstractEventLoop, event: asyncio.Event, _: object) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nobody is waiting
        loop.call_soon_threadsafe(event.set)


_ATTEMPT_THREADS: Final[contextvars.ContextVar[AttemptThreads | None]] = contextvars.ContextVar(
    "asyncjob_attempt_threads", default=None
)


class LoopThreads(concurrent.futures.ThreadPoolExecutor):
    """The event loop's own threads; each call is recorded for the handler that has made it."""

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> "concurrent.futures.Future[T]":
        """Run a call in a thread."""
        call = super().submit(fn, *args, **kwargs)
        attempt = _ATTEMPT_THREADS.get()
        if attempt is not None:
            attempt.add(call)
        return call


def guarded_call(
    function: Callable[..., object], arguments: tuple[object, ...]
) -> Callable[[], object]:
    """Return the call of a sync handler; exceptions that a future cannot carry are wrapped."""

    def call() -> object:
        try:
            return function(*arguments)
        except (SystemExit, KeyboardInterrupt, StopIteration, *_CANCELLED) as error:
            raise HandlerExitError(_exit_message(error)) from error

    return call


def _exit_message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the handler called sys.exit({error.code!r})"
    return f"the handler raised {type(error).__name__}"
