"""Handlers in processes of their own, as simulated processes that a worker's process starts.

What they say to each other over pipes is not part of the simulation; that each goes on while the
other stands still is, and that the worker makes the requests to a store.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from asyncjob.app import Handler, JobContext
from asyncjob.app.error_report import HandlerCrashedError
from asyncjob.app.errors import HandlerExitError
from asyncjob.app.files import Files
from asyncjob.offload.store import ObjectStat
from asyncjob_simulation.processes import Process, current_process
from asyncjob_worker.isolation.executor import RunningHandler


def start_isolated(
    _executor: object, handler: Handler, context: JobContext, payload: object
) -> RunningHandler:
    """Start a handler in a process of its own; stands in for `HandlerExecutor._start_process`."""
    worker = current_process()
    assert worker is not None  # handlers run in workers only
    future: asyncio.Future[object] = worker.loop.create_future()
    name = f"{worker.name} handler {len(worker.children)}"
    child = Process(name, worker.loop, wall_offset=worker.wall_offset, parent=worker)
    context._files = _RemoteFiles(worker, context.files)  # noqa: SLF001  # a process has its own
    task: asyncio.Task[Any] = child.spawn(handler.function(context, payload))

    def ended(done: "asyncio.Task[Any]") -> None:
        if child.is_alive:
            worker.call(lambda: _settle(future, done))

    def killed() -> None:
        worker.call(lambda: _fail(future))

    def interrupt() -> None:
        context.stop()
        child.call(task.cancel)

    task.add_done_callback(ended, context=Context())
    child.on_death.append(killed)
    return RunningHandler(future, interrupt, child.kill, child.kill)


def _settle(future: "asyncio.Future[object]", done: "asyncio.Task[Any]") -> None:
    if future.done():
        return
    error = HandlerExitError("stopped") if done.cancelled() else done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)


def _fail(future: "asyncio.Future[object]") -> None:
    if not future.done():
        future.set_exception(HandlerCrashedError("the process of the handler was killed"))


@dataclass(frozen=True, slots=True)
class _RemoteFiles:
    """The worker's files as a handler's process sees them; stands in for `RemoteFiles`."""

    worker: Process
    files: Files

    async def stat(self, uri: str) -> ObjectStat:
        """Have the worker ask for size and version of a file; raises OffloadError."""
        answer: ObjectStat = await _ask(self.worker, lambda: self.files.stat(uri))
        return answer

    async def read(self, uri: str, start: int, end: int) -> bytes:
        """Have the worker read a part of a file; raises OffloadError."""
        answer: bytes = await _ask(self.worker, lambda: self.files.read(uri, start, end))
        return answer

    def results(self, uri: str) -> "_RemoteFolder":
        """Return a folder for results; whether they may go there is said when one is written."""
        return _RemoteFolder(self, uri)


@dataclass(frozen=True, slots=True)
class _RemoteFolder:
    """Where results go, by requests to the worker; stands in for `RemoteFolder`."""

    remote: _RemoteFiles
    uri: str

    async def write(self, folder: str, name: str, data: bytes) -> None:
        """Have the worker write an object; raises OffloadError."""

        async def write() -> None:
            await self.remote.files.results(self.uri).write(folder, name, data)

        await _ask(self.remote.worker, write)


async def _ask(worker: Process, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Have a worker's process do something; it is cancelled there if nobody waits any more."""
    answer: asyncio.Future[Any] = worker.loop.create_future()
    task = worker.spawn(work())

    def answered(done: "asyncio.Task[Any]") -> None:
        if answer.done() or done.cancelled():
            return
        if error := done.exception():
            answer.set_exception(error)
        else:
            answer.set_result(done.result())

    task.add_done_callback(answered, context=Context())
    try:
        return await answer
    except asyncio.CancelledError:
        worker.call(task.cancel)
        raise
