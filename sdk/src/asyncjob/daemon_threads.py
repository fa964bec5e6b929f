"""Calls in a daemon thread, for code of others that may never return."""

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def run_in_daemon_thread(call: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Run a call in a thread that holds up nobody's exit; cancelling gives up waiting for it."""
    source = uncancellable_future()
    run = contextvars.copy_context().run

    def main() -> None:
        try:
            source.set_result(run(call))
        except StopIteration as error:
            source.set_exception(RuntimeError(f"it raised {error!r}"))
        except BaseException as error:  # noqa: BLE001  # it is handed on, whatever it is
            source.set_exception(error)

    threading.Thread(target=main, name=name, daemon=True).start()
    return asyncio.wrap_future(source)


def uncancellable_future() -> concurrent.futures.Future[Any]:
    """Return a future for a thread to fill; a waiter cannot cancel it."""
    source: concurrent.futures.Future[Any] = concurrent.futures.Future()
    source.set_running_or_notify_cancel()
    return source
