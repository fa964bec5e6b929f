"""Starts handlers: in the event loop, or in a thread. How an attempt goes on is not its concern."""

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from asyncjob.app import Handler, Isolation, JobContext

Work = asyncio.Future[object]

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


class HandlerExitError(Exception):
    """The handler tried to end the process or its own task."""


@dataclass(frozen=True, slots=True)
class Started:
    """A handler at work. `interrupt` asks it to stop; `kill`, where there is one, makes it."""

    work: Work
    interrupt: Callable[[], object]
    kill: Callable[[], object] | None = None


class Starter(Protocol):
    """Starts handlers, plainly or inside something else."""

    def start(self, handler: Handler, context: JobContext, payload: object) -> Started:
        """Start a handler in the running event loop's care."""


class Starts:
    """Starts the handlers of one worker process; `threads` is the most that run in threads."""

    def __init__(self, threads: int) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, "handler")

    def start(self, handler: Handler, context: JobContext, payload: object) -> Started:
        """Start a handler in the running event loop's care."""
        arguments = (context, payload) if handler.takes_payload else (context,)
        if handler.isolation is Isolation.LOOP:
            return _start_task(handler, context, arguments)
        return self._start_thread(handler, context, arguments)

    def close(self) -> None:
        """Let go of the threads; one that never ends does not hold up the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start_thread(
        self, handler: Handler, context: JobContext, arguments: tuple[object, ...]
    ) -> Started:
        call = _call(handler.function, arguments)
        run = contextvars.copy_context().run
        work = asyncio.get_running_loop().run_in_executor(self._threads, run, call)
        # A thread only sees that it is to stop, and is not over before it is.
        return Started(work, context.stop)


def _start_task(handler: Handler, context: JobContext, arguments: tuple[object, ...]) -> Started:
    work = asyncio.get_running_loop().create_task(_contained(handler.function(*arguments)))

    def interrupt() -> None:
        context.stop()
        work.cancel()

    return Started(work, interrupt)


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
