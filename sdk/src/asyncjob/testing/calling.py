"""Calls a handler as a worker does: in the event loop or in a thread, with its resources.

How an attempt goes on is not its concern.
"""

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, get_type_hints

from asyncjob.app import Handler, Isolation, JobContext
from asyncjob.testing.errors import TestKitError

Resources = Mapping[Any, object]
"""What is injected into handlers, by type."""

Work = asyncio.Future[object]

_EXITS: Final = (SystemExit, KeyboardInterrupt)
_UNCARRIED: Final = (
    *_EXITS,
    StopIteration,
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
)


class HandlerExitError(Exception):
    """The handler tried to end the process or its own task; a worker's error of this name."""


def runs_in_loop(handler: Handler) -> bool:
    """Return whether the handler is run as a task; if not, in a thread."""
    return handler.isolation is Isolation.LOOP or inspect.iscoroutinefunction(handler.function)


def start(
    handler: Handler,
    job: JobContext,
    payload: object,
    resources: Resources,
    context: contextvars.Context,
) -> Work:
    """Start the handler."""
    positional = (job, payload) if handler.takes_payload else (job,)
    call = partial(handler.function, *positional, **_injected(handler, resources))
    if runs_in_loop(handler):
        return asyncio.get_running_loop().create_task(_contained(call), context=context)
    return _in_thread(partial(context.run, call))


def _injected(handler: Handler, resources: Resources) -> dict[str, object]:
    """Return the keyword-only arguments: for each the resource of the type that it declares."""
    function = handler.function
    parameters = inspect.signature(function).parameters.values()
    wanted = [item for item in parameters if item.kind is inspect.Parameter.KEYWORD_ONLY]
    hints = get_type_hints(function) if wanted else {}
    given = {item.name: hints.get(item.name) for item in wanted}
    for item in wanted:
        if given[item.name] not in resources and item.default is inspect.Parameter.empty:
            raise _missing(handler, item.name, given[item.name])
    return {name: resources[kind] for name, kind in given.items() if kind in resources}


def _missing(handler: Handler, name: str, kind: Any) -> TestKitError:
    what = getattr(kind, "__name__", str(kind))
    return TestKitError(
        f"handler {handler.type!r} wants {name}: {what}, which the test does not give: "
        f"resources={{{what}: ...}}"
    )


async def _contained(call: Callable[[], Any]) -> object:
    """Keep `sys.exit()` in a handler from ending the test."""
    try:
        return await call()
    except _EXITS as error:
        raise HandlerExitError(_exit(error)) from error


def _in_thread(call: Callable[[], Any]) -> Work:
    """Run it in a thread of its own, which holds up nobody if it never ends."""
    loop = asyncio.get_running_loop()
    work: Work = loop.create_future()

    def tell(settle: Callable[[Any], None], value: object) -> None:
        if not work.done():
            settle(value)

    def main() -> None:
        settle: Callable[[Any], None] = work.set_result
        try:
            value = call()
        except _UNCARRIED as error:
            settle, value = work.set_exception, HandlerExitError(_exit(error))
        except BaseException as error:  # noqa: BLE001  # a handler may raise anything
            settle, value = work.set_exception, error
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, settle, value)

    threading.Thread(target=main, name="handler", daemon=True).start()
    return work


def _exit(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the handler called sys.exit({error.code!r})"
    return f"the handler raised {type(error).__name__}"
