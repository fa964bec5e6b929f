"""A value that is on its way: awaited in async handlers, asked for its result in sync ones."""

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from asyncjob.app.child_errors import AttemptOverError

T = TypeVar("T")


class SyncOrAsyncFuture(Generic[T]):
    """What `await` gives in an async handler, and `.result()` in a sync one."""

    def __init__(self, future: "concurrent.futures.Future[T]") -> None:
        self._future = future

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the value; raises what went wrong."""
        return asyncio.wrap_future(self._future).__await__()

    def result(self, timeout: float | None = None) -> T:
        """Wait for the value in a sync handler, for so many seconds.

        Raises what went wrong, TimeoutError after `timeout`, and AttemptOverError if the handler is
        told to stop meanwhile.
        """
        if not self._future.done():
            _refuse_in_event_loop()
        try:
            return self._future.result(timeout)
        except concurrent.futures.CancelledError as error:
            raise AttemptOverError from error


def _refuse_in_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("result() would block the event loop: await it in an async handler")


def map_future(
    source: "concurrent.futures.Future[Any]", step: Any
) -> "concurrent.futures.Future[Any]":
    """Return a future of what a quick step makes of another's value; cancelling goes both ways."""
    target: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def take(_: "concurrent.futures.Future[Any]") -> None:
        if source.cancelled():
            target.cancel()
            return
        if not target.set_running_or_notify_cancel():
            return
        try:
            target.set_result(step(source.result()))
        except Exception as error:  # noqa: BLE001  # it is handed on, whatever it is
            target.set_exception(error)

    def give_up(_: "concurrent.futures.Future[Any]") -> None:
        if target.cancelled():
            source.cancel()

    source.add_done_callback(take)
    target.add_done_callback(give_up)
    return target
