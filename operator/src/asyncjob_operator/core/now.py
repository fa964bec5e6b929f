"""The time a decision is taken at: two clock readings and a random number, passed in as one value.

Stored timestamps, which anybody may have written, are read into epoch seconds here as well.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from asyncjob.lifecycle.timestamps import format_timestamp, parse_timestamp

MAX_WALL_CLOCK_WAIT: Final = 60.0
"""Somebody may set the wall clock: a calendar time is looked at again at least so often."""


@dataclass(frozen=True, slots=True)
class Now:
    """`monotonic` decides durations, in seconds; `wall` (epoch seconds) only calendar times.

    `jitter` is uniform in [0, 1) and decides the jitter of a retry.
    """

    monotonic: float
    wall: float
    jitter: float = 0.5

    @property
    def timestamp(self) -> str:
        """Return the wall clock as it is stored."""
        return format_timestamp(datetime.fromtimestamp(self.wall, UTC))

    def seconds_until(self, time: str) -> float:
        """Return how many seconds of wall time are left until a stored time.

        What tells no time never comes: nothing starts, and nothing is given up, because of it.
        """
        return to_epoch(time, default=float("inf")) - self.wall

    def recheck_at(self, time: str) -> float:
        """Return when on the monotonic clock to look again for a calendar time."""
        return self.monotonic + min(max(self.seconds_until(time), 0.0), MAX_WALL_CLOCK_WAIT)


MIN_EPOCH: Final = datetime(1000, 1, 1, tzinfo=UTC).timestamp()
MAX_EPOCH: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""What the CRDs' pattern of a time takes, once it is in UTC."""


def to_epoch(time: str, *, default: float) -> float:
    """Return a stored time as epoch seconds; `default` for a text that tells no time.

    Anybody who may write an object writes its times. What is returned for a text can be stored
    again: with an offset, a time that the API server takes lies in a year that it refuses.
    """
    try:
        moment = parse_timestamp(time)
    except ValueError:
        return default
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return min(max(seconds, MIN_EPOCH), MAX_EPOCH)
