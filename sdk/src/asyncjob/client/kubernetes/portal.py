"""An event loop in a thread of its own, for callers that have none."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final

from asyncjob.client.kubernetes.world import KubeWorld
from asyncjob.client.steps import Answer, Step, T

_CLOSED: Final = "the client is closed; make another one"


class Portal:
    """Runs coroutines in its thread; whoever asks waits for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self.closed = False
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="asyncjob-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns; an interrupt of the caller cancels it.

        Raises RuntimeError where the portal is closed, also while the coroutine runs.
        """
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            if self.closed:
                raise RuntimeError(_CLOSED) from None
            raise
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Callable[[], Awaitable[None]] | None = None) -> None:
        """End what still runs, then do the `last` thing, then end the thread; once."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        try:
            asyncio.run_coroutine_threadsafe(_cancel_all_and_close(last), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self.closed:
                work.close()
                raise RuntimeError(_CLOSED)
            return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _cancel_all_and_close(last: Callable[[], Awaitable[None]] | None) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    if last is not None:
        await last()


class PortalWorld:
    """One run of an operation, whose steps are done in the portal's thread."""

    def __init__(self, portal: Portal, world: KubeWorld) -> None:
        self._portal = portal
        self._world = world

    def do(self, step: Step) -> Answer:
        """Do one step."""
        return self._portal.run(self._world.do(step))

    def close(self) -> None:
        """Close the watch, if one is open; a closed portal has closed it already."""
        if not self._portal.closed:
            self._portal.run(self._world.aclose())
