"""Handlers in processes of their own, as simulated processes that a worker's process starts.

What they say to each other over pipes is not part of the simulation; that each goes on while the
other stands still is.
"""

import asyncio
from contextvars import Context
from typing import Any

from asyncjob.app import Handler, JobContext
from asyncjob.app.errors import HandlerExitError
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
        future.set_exception(HandlerExitError("the process of the handler was killed"))
