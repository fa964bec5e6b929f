"""Calls a handler so that it can end nothing but itself."""

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


class HandlerExitError(Exception):
    """The handler tried to end the process or its own task."""


async def guard_exit(handler: Awaitable[object]) -> object:
    """Keep `sys.exit()` in an async handler from ending the process."""
    try:
        return await handler
    except (SystemExit, KeyboardInterrupt) as error:
        raise HandlerExitError(_exit_message(error)) from error


def guarded_call(
    function: Callable[..., object], arguments: tuple[object, ...]
) -> Callable[[], object]:
    """Return the call of a sync handler; what a future cannot carry is wrapped."""

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
