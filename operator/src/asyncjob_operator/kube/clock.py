"""The operator's clocks and its randomness: the only place that reads either."""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog

from asyncjob_operator.core.now import Now

log = structlog.get_logger()


def monotonic() -> float:
    """Return seconds on a clock that nobody sets and that runs on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def wall_seconds() -> float:
    """Return this machine's wall clock in epoch seconds."""
    return time.time()


MAX_SKEW_SECONDS: Final = 5.0
"""Seconds within which two clocks count as equal: answers have whole seconds and take a while."""


class Clock:
    """This machine's wall clock, or the API server's where the two disagree.

    Deletion compares with times that the API server wrote, and what a cron job has settled never
    comes back: neither may hang on the clock of the one machine that happens to lead.
    """

    def __init__(
        self,
        server_time: Callable[[], float | None],
        wall: Callable[[], float] = wall_seconds,
    ) -> None:
        self._server_time = server_time
        self._wall = wall
        self._is_skewed = False

    def now(self, jitter: float = 0.5) -> Now:
        """Return this moment."""
        wall, server = self._wall(), self._server_time()
        skew = 0.0 if server is None else wall - server
        self._log_skew_change(skew)
        if self._is_skewed:
            return Now(monotonic(), wall - skew, jitter)
        return Now(monotonic(), wall, jitter, ahead=skew)

    def _log_skew_change(self, skew: float) -> None:
        disagrees = abs(skew) > MAX_SKEW_SECONDS
        if disagrees and not self._is_skewed:
            log.warning("clock disagrees with the API server's, whose time counts", ahead=skew)
        if self._is_skewed and not disagrees:
            log.info("clock agrees with the API server's again")
        self._is_skewed = disagrees


def current_time(jitter: float = 0.5) -> Now:
    """Return this moment."""
    return Now(monotonic(), wall_seconds(), jitter)


def micro_time() -> str:
    """Return the wall clock with microseconds, as coordination Leases want it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def random_fraction() -> float:
    """Return a number uniform in [0, 1)."""
    return random.random()
