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
        """Return how many seconds of wall time are left until a stored time.

        What tells no time never comes: nothing starts, and nothing is given up, because of it.
        """
        return epoch(time, otherwise=float("inf")) - self.wall

    def look_at(self, time: str) -> float:
        """Return when on the monotonic clock to look again for a calendar time."""
        return self.monotonic + min(max(self.until(time), 0.0), LONGEST_WALL_WAIT)


EARLIEST: Final = datetime(1000, 1, 1, tzinfo=UTC).timestamp()
LATEST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""What the CRDs' pattern of a time takes, once it is in UTC."""


def epoch(time: str, *, otherwise: float) -> float:
    """Return a stored time as epoch seconds; `otherwise` for a text that tells no time.

    Anybody who may write an object writes its times. What is returned for a text can be stored
    again: with an offset, a time that the API server takes lies in a year that it refuses.
    """
    try:
        moment = from_text(time)
    except ValueError:
        return otherwise
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return min(max(seconds, EARLIEST), LATEST)
