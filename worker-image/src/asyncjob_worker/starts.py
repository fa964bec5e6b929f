"""Starts handlers: in the event loop, in a thread, or in a process of their own.

How an attempt goes on is not its concern.
"""

import asyncio
import concurrent.futures
import contextvars
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from asyncjob.app import Handler, Isolation, JobContext
from asyncjob.errors import ConfigError
from asyncjob_worker.calls import HandlerExitError, contained, contained_call
from asyncjob_worker.isolation.errand import Errand
from asyncjob_worker.isolation.messages import Begin
from asyncjob_worker.isolation.pool import Pool
from asyncjob_worker.settings import Settings

__all__ = ["HandlerExitError", "Started", "Starts", "Work"]

Work = asyncio.Future[object]


@dataclass(frozen=True, slots=True)
class Started:
    """A handler at work. `interrupt` asks it to stop; `kill`, where there is one, makes it.

    `kill_anywhere` does so from any thread, for an event loop that stands still.
    """

    work: Work
    interrupt: Callable[[], object]
    kill: Callable[[], object] | None = None
    kill_anywhere: Callable[[], object] | None = None


class Starter(Protocol):
    """Starts handlers, plainly or inside something else."""

    def start(self, handler: Handler, context: JobContext, payload: object) -> Started:
        """Start a handler in the running event loop's care."""


class Starts:
    """Starts the handlers of one worker process.

    `threads` is the most that run in threads; `pool` has the processes of those that need one.
    """

    def __init__(self, threads: int, pool: Pool | None = None) -> None:
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, "handler")
        self._pool = pool

    @classmethod
    def of(cls, settings: Settings) -> "Starts":
        """Return the starts of a worker process with these settings."""
        begin = Begin(settings.app, list(sys.path), settings.log_format, settings.max_free_json)
        pool = Pool(begin, settings.slots(), jobs_each=settings.jobs_per_process)
        return cls(settings.slots(), pool)

    def start(self, handler: Handler, context: JobContext, payload: object) -> Started:
        """Start a handler in the running event loop's care."""
        if handler.isolation is Isolation.PROCESS:
            return self._start_process(handler, context, payload)
        arguments = (context, payload) if handler.takes_payload else (context,)
        if handler.isolation is Isolation.LOOP:
            return _start_task(handler, context, arguments)
        return self._start_thread(handler, context, arguments)

    async def end_processes(self) -> None:
        """End the processes: those that are idle are asked first."""
        if self._pool is not None:
            await self._pool.close()

    def close(self) -> None:
        """Let go of the threads; one that never ends does not hold up the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start_process(self, handler: Handler, context: JobContext, payload: object) -> Started:
        if self._pool is None:
            raise ConfigError(f"handler {handler.type!r} needs a process, and there are none here")
        errand = Errand(self._pool, handler, context, payload)
        work = asyncio.get_running_loop().create_task(errand.run())

        def interrupt() -> None:
            context.stop()
            if not errand.stop():
                work.cancel()

        def kill() -> None:
            if not errand.kill():
                work.cancel()

        return Started(work, interrupt, kill, errand.kill_process)

    def _start_thread(
        self, handler: Handler, context: JobContext, arguments: tuple[object, ...]
    ) -> Started:
        call = contained_call(handler.function, arguments)
        run = contextvars.copy_context().run
        work = asyncio.get_running_loop().run_in_executor(self._threads, run, call)
        # A thread only sees that it is to stop, and is not over before it is.
        return Started(work, context.stop)


def _start_task(handler: Handler, context: JobContext, arguments: tuple[object, ...]) -> Started:
    work = asyncio.get_running_loop().create_task(contained(handler.function(*arguments)))

    def interrupt() -> None:
        context.stop()
        work.cancel()

    return Started(work, interrupt)
