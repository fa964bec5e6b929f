"""An event loop in a thread of its own, for clients whose users have none."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from asyncjob.client.on_kubernetes.world import KubeWorld
from asyncjob.client.steps import Answer, Step, T


class Portal:
    """Runs coroutines in its thread; whoever asks waits for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="asyncjob-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns; an interrupt of the caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class PortalWorld:
    """One run of an operation, whose steps are done in the portal's thread."""

    def __init__(self, portal: Portal, world: KubeWorld) -> None:
        self._portal = portal
        self._world = world

    def do(self, step: Step) -> Answer:
        """Do one step."""
        return self._portal.run(self._world.do(step))

    def close(self) -> None:
        """Close the watch, if one is open."""
        self._portal.run(self._world.aclose())
