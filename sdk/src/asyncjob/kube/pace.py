"""The pace of something done in rounds for ever, such as watches one after the other.

A round that lasted is followed by the next at once; short ones, whether they failed or were merely
ended by the server, come farther and farther apart.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from asyncjob.kube.backoff import Backoff

HEALTHY_SECONDS: Final = 5.0


class Pace:
    """Waits between rounds. `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._began = clock()

    def begin(self) -> None:
        """Begin a round."""
        self._began = self._clock()

    def pause(self, *, failed: bool) -> float:
        """Return how long to wait after a round, in seconds."""
        lasted = self._clock() - self._began >= HEALTHY_SECONDS
        if lasted:
            self._backoff.reset()
        return self._backoff.pause() if failed or not lasted else 0.0


def loop_pace() -> Pace:
    """Return a pace by the running event loop's clock."""
    return Pace(asyncio.get_running_loop().time)
