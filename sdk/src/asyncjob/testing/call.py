"""Calls a handler as a worker does: inside its app's middleware, in the loop or in a thread."""

import asyncio
import concurrent.futures
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from asyncjob.app import Handler, Isolation, Resources, WorkerApp, outcomes
from asyncjob.app.errors import HandlerExitError
from asyncjob.app.handler import wrap_in_middleware
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.testing.handler_messages import SteppedContext

_EXIT_ERRORS: Final = (SystemExit, KeyboardInterrupt)
_NOT_FUTURE_SAFE: Final = (
    *_EXIT_ERRORS,
    StopIteration,
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
)


def runs_in_loop(handler: Handler) -> bool:
    """Return whether the handler is run in the event loop; if not, in a thread."""
    return handler.isolation is Isolation.LOOP or inspect.iscoroutinefunction(handler.function)


async def call_handler(
    app: WorkerApp, handler: Handler, job: SteppedContext, payload: object, resources: Resources
) -> object:
    """Run the handler; not over before the handler is, unless the job's context is abandoned."""
    positional = (job, payload) if handler.takes_payload else (job,)
    call = partial(handler.function, *positional, **resources.arguments(handler.needs))

    layers = app.middleware_of(handler)

    async def core() -> object:
        try:
            return await (call() if runs_in_loop(handler) else _run_in_thread(call, job))
        except HandlerExitError as error:
            if layers and error.is_cancellation:  # no Exception to a middleware
                raise asyncio.CancelledError(str(error)) from error
            raise

    try:
        result: object = await wrap_in_middleware(layers, job, resources, core)()
    except _EXIT_ERRORS as error:
        raise HandlerExitError(_exit_message(error)) from error
    except BaseException as error:
        if not outcomes.asks_to_park(error):
            raise
        parked = error
    else:
        await job.wait_for_submissions()
        return result
    await job.wait_for_submissions(parking=True)
    raise parked


async def _run_in_thread(call: Callable[[], Any], job: SteppedContext) -> object:
    """Run it in a thread that holds up nobody's exit; a cancel alone does not end the wait."""
    future = run_in_daemon_thread(partial(_guard_exit, call), "handler")
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
            if job.abandoned:
                raise
    if cancelled is not None:
        future.exception()  # no longer counts
        raise cancelled
    return future.result()


def _guard_exit(call: Callable[[], Any]) -> object:
    """Call a sync handler; what a future cannot carry is wrapped."""
    try:
        return call()
    except _NOT_FUTURE_SAFE as error:
        raise HandlerExitError(_exit_message(error)) from error


def _exit_message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the handler called sys.exit({error.code!r})"
    return f"the handler raised {type(error).__name__}"
