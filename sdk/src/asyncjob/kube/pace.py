"""The pace of something done in rounds for ever, such as watches one after the other.

A round that lasted is followed by the next at once; short ones, whether they failed or were merely
ended by the server, come farther and farther apart.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from asyncjob.kube.backoff import ExponentialBackoff

HEALTHY_ROUND_SECONDS: Final = 5.0


class RoundPacer:
    """Waits between rounds. `clock` gives seconds and never goes back."""

    def __init__(
        self, clock: Callable[[], float], backoff: ExponentialBackoff | None = None
    ) -> None:
        self._clock = clock
        self._backoff = backoff or ExponentialBackoff()
        self._started_at = clock()

    def start_round(self) -> None:
        """Begin a round."""
        self._started_at = self._clock()

    def next_delay(self, *, failed: bool) -> float:
        """Return how long to wait after a round, in seconds."""
        lasted = self._clock() - self._started_at >= HEALTHY_ROUND_SECONDS
        if lasted:
            self._backoff.reset()
        return self._backoff.next_delay() if failed or not lasted else 0.0


def event_loop_pacer() -> RoundPacer:
    """Return a pace by the running event loop's clock."""
    return RoundPacer(asyncio.get_running_loop().time)
