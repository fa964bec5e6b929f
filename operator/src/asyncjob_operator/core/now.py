"""The time a decision is taken at: two clock readings and a random number, passed in as one value.

Stored timestamps, which anybody may have written, are read into epoch seconds here as well.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from asyncjob.lifecycle.timestamps import format_timestamp, parse_timestamp

MAX_WALL_CLOCK_WAIT: Final = 60.0
"""Seconds after which a calendar time is compared with the wall clock again: it may be set."""

MAX_SERVER_CLOCK_WAIT: Final = 86_400.0
"""Seconds after which a time of the API server's clock is compared with that clock again."""


@dataclass(frozen=True, slots=True)
class Now:
    """The readings of one decision."""

    monotonic: float
    """Seconds; all durations are measured with it."""

    wall: float
    """Epoch seconds; only calendar times are compared with it."""

    jitter: float = 0.5
    """Uniform in [0, 1), for the backoff of a retry."""

    ahead: float = 0.0
    """How far `wall` is ahead of the API server's clock, as far as is known, to a second."""

    @property
    def server_wall(self) -> float:
        """Return the API server's clock in epoch seconds."""
        return self.wall - self.ahead

    @property
    def timestamp(self) -> str:
        """Return the wall-clock time as it is stored."""
        return format_timestamp(datetime.fromtimestamp(self.wall, UTC))

    def seconds_until(self, time: str) -> float:
        """Return how many seconds of wall time are left until a stored time.

        A text that is not a time never comes: nothing starts and nothing ends because of it.
        """
        return to_epoch(time, default=float("inf")) - self.wall

    def server_seconds_until(self, time: str) -> float:
        """Return how many seconds are left until a stored time by the API server's clock."""
        return to_epoch(time, default=float("inf")) - self.server_wall

    def recheck_at_server_time(self, time: str) -> float:
        """Return when, in monotonic seconds, to compare a time with the API server's clock again.

        That clock is known to a second, and does not jump with this machine's. If it is set itself,
        that is seen after half of the time that is left.
        """
        left = max(self.server_seconds_until(time), 0.0)
        pause = min(max(MAX_WALL_CLOCK_WAIT, left / 2), MAX_SERVER_CLOCK_WAIT)
        return self.monotonic + min(left, pause)

    def recheck_at(self, time: str) -> float:
        """Return when, in monotonic seconds, to compare a calendar time with `wall` again."""
        return self.monotonic + min(max(self.seconds_until(time), 0.0), MAX_WALL_CLOCK_WAIT)


MIN_EPOCH: Final = datetime(1000, 1, 1, tzinfo=UTC).timestamp()
MAX_EPOCH: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
"""The times that the CRDs' pattern accepts, in UTC."""


def to_epoch(time: str | None, *, default: float) -> float:
    """Return a stored time as epoch seconds; `default` for none and for a text that is not a time.

    Anybody who may write an object writes its times. The result is clamped so that it can be stored
    again: a time with an offset may, in UTC, lie in a year that the API server refuses.
    """
    if time is None:
        return default
    try:
        parsed = parse_timestamp(time)
    except ValueError:
        return default
    seconds = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    return min(max(seconds, MIN_EPOCH), MAX_EPOCH)
