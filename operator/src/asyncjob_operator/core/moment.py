"""The moment a decision is taken at: two clocks and one draw, all handed in."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from asyncjob.lifecycle.timestamps import from_text, to_text

LONGEST_WALL_WAIT: Final = 60.0
"""Somebody may set the wall clock: a calendar time is looked at again at least so often."""


@dataclass(frozen=True, slots=True)
class Moment:
    """`monotonic` decides durations, in seconds; `wall` (epoch seconds) only calendar times.

    `draw` is uniform in [0, 1) and decides the jitter of a retry.
    """

    monotonic: float
    wall: float
    draw: float = 0.5

    @property
    def text(self) -> str:
        """Return the wall clock as it is stored."""
        return to_text(datetime.fromtimestamp(self.wall, UTC))

    def until(self, time: str) -> float:
        """Return how many seconds of wall time are left until a stored time."""
        return epoch(time) - self.wall

    def look_at(self, time: str) -> float:
        """Return when on the monotonic clock to look again for a calendar time."""
        return self.monotonic + min(max(self.until(time), 0.0), LONGEST_WALL_WAIT)


def epoch(time: str) -> float:
    """Return a stored time as epoch seconds."""
    return from_text(time).timestamp()
