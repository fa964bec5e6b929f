"""The pace of loops: pauses after failures and between rounds, and yielding to other tasks.

A round that lasted is followed by the next at once. Short rounds, whether they failed or the server
ended them, come at growing intervals. Long work of small steps gives way to the other tasks of the
event loop by time, because the steps differ too much in cost to be counted.
"""

import asyncio
import random
from asyncio import get_running_loop, sleep
from collections.abc import Callable
from typing import Final

from asyncjob.backoff import backoff_delay, with_jitter
from asyncjob.errors import ApiError

OUTAGE_BACKOFF_INITIAL: Final = 1.0
MAX_OUTAGE_BACKOFF: Final = 10.0
"""Pauses in seconds between tries to reach an API server that is away: the first, and the longest.

What waits for it may wait that much longer than the outage itself lasts. They are not shorter
because all clients of a cluster come back at the same time; both are chosen, not measured.
"""

MAX_RETRY_AFTER: Final = 10.0
"""Longest pause in seconds that the API server may ask for."""

_RETRY_AFTER_SPREAD: Final = 0.5
"""By how much more of what it asks for clients wait, by chance: it asks all of them for the same.
"""


def retry_after_delay(seconds: float) -> float:
    """Return the pause after an answer that asks for one: no shorter, unless that is too long."""
    return min(seconds, MAX_RETRY_AFTER) * random.uniform(1.0, 1.0 + _RETRY_AFTER_SPREAD)


class ExponentialBackoff:
    """Counts failures in a row: pauses from `initial` doubling up to `cap` seconds, with jitter."""

    def __init__(
        self, initial: float = OUTAGE_BACKOFF_INITIAL, cap: float = MAX_OUTAGE_BACKOFF
    ) -> None:
        self._initial = initial
        self._cap = cap
        self._failures = 0

    def next_delay(self) -> float:
        """Count a failure and return how long to wait now, in seconds."""
        self._failures += 1
        return with_jitter(backoff_delay(self._failures, self._initial, self._cap))

    def reset(self) -> None:
        """Start from `initial` again: something succeeded."""
        self._failures = 0


HEALTHY_ROUND_SECONDS: Final = 5.0
"""A round that has lasted this long has worked: the pauses after it begin short again."""


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

    def next_delay(self, error: ApiError | None = None) -> float:
        """Return how long to wait after a round, in seconds; `error`: what it failed with."""
        lasted = self._clock() - self._started_at >= HEALTHY_ROUND_SECONDS
        if lasted:
            self._backoff.reset()
        if error is None:
            return 0.0 if lasted else self._backoff.next_delay()
        return max(self._backoff.next_delay(), retry_after_delay(error.retry_after))


def event_loop_pacer() -> RoundPacer:
    """Return a pace by the running event loop's clock."""
    return RoundPacer(asyncio.get_running_loop().time)


TIME_SLICE_SECONDS: Final = 0.02
"""Seconds for which the loop may be held. Steps differ too much in cost to count them instead."""


class TimeSlice:
    """One stretch of work in the running event loop."""

    def __init__(self) -> None:
        self._clock = get_running_loop().time
        self._ends_at = self._clock() + TIME_SLICE_SECONDS

    async def yield_if_due(self) -> None:
        """Let others go first if it has been long; call it after each small step."""
        if self._clock() >= self._ends_at:
            await sleep(0)
            self._ends_at = self._clock() + TIME_SLICE_SECONDS
