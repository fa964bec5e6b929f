"""The operator's clocks, the only place that reads them."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog

from asyncjob_operator.core.moment import Moment

log = structlog.get_logger()


def monotonic() -> float:
    """Return seconds on a clock that nobody sets and that runs on while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


MAX_SKEW: Final = 5.0
"""An answer tells whole seconds and takes a while; within so many, the two clocks agree."""


class Clock:
    """This machine's wall clock, or the API server's where the two disagree.

    Deletion compares with times that the API server wrote, and what a schedule has settled never
    comes back: neither may hang on the clock of the one machine that happens to lead.
    """

    def __init__(
        self,
        server_time: Callable[[], float | None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._server_time = server_time
        self._wall = wall
        self._disagrees = False

    def moment(self, draw: float = 0.5) -> Moment:
        """Return this moment."""
        wall, server = self._wall(), self._server_time()
        skew = 0.0 if server is None else wall - server
        self._say(skew)
        return Moment(monotonic(), wall - skew if self._disagrees else wall, draw)

    def _say(self, skew: float) -> None:
        disagrees = abs(skew) > MAX_SKEW
        if disagrees and not self._disagrees:
            log.warning("clock disagrees with the API server's, whose time counts", ahead=skew)
        if self._disagrees and not disagrees:
            log.info("clock agrees with the API server's again")
        self._disagrees = disagrees


def moment(draw: float = 0.5) -> Moment:
    """Return this moment."""
    return Moment(monotonic(), time.time(), draw)


def micro_text() -> str:
    """Return the wall clock with microseconds, as coordination Leases want it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
