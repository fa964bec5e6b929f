"""Threads for blocking calls, so many at a time, that never hold up the end of the process.

Python waits for the threads of a pool before it ends, and so a store that hangs would keep a worker
from ending.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class BoundedThreads:
    """Runs blocking calls; one that nobody waits for any more still counts until it returns."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)

    async def run(self, call: Callable[[], T], *, seconds: float) -> T:
        """Return what the call returns, in a thread of its own.

        Raises TimeoutError after `seconds`, though the call itself goes on, and when no
        thread is free because too many calls hang.
        """
        if not self._free.acquire(blocking=False):
            raise TimeoutError("too many requests to the store hang")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        work = _ThreadCall(call, answer, self._free, loop)
        threading.Thread(target=work.run, name="store", daemon=True).start()
        async with asyncio.timeout(seconds):
            return await answer


class _ThreadCall:
    def __init__(
        self,
        call: Callable[[], T],
        answer: "asyncio.Future[T]",
        free: threading.Semaphore,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._call = call
        self._answer: asyncio.Future[Any] = answer
        self._free = free
        self._loop = loop

    def run(self) -> None:
        """Make the call; called in the thread."""
        try:
            result, error = self._call(), None
        except Exception as raised:  # noqa: BLE001  # handed to whoever waits
            result, error = None, raised
        finally:
            self._free.release()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, result, error)

    def _deliver(self, result: object, error: Exception | None) -> None:
        if self._answer.done():
            return
        if error is not None:
            self._answer.set_exception(error)
        else:
            self._answer.set_result(result)
