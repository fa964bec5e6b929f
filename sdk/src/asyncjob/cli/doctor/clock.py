"""Whether the clock here agrees with the API server's. Pure: another question has the times."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.cli.durations import precise_duration

CLOCK_CHECK: Final = "Clock"
WARNING_SECONDS: Final = 5.0
"""Seconds from which the ages shown here are wrong."""
PROBLEM_SECONDS: Final = 300.0
"""Seconds from which tokens and times given here mean something else there."""
DATE_RESOLUTION: Final = timedelta(seconds=1)
"""A Date header is cut to the second."""

_SYNCHRONISE: Final = "synchronise this machine's clock (NTP)"


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """How far this clock is ahead, in seconds: somewhere between the two."""

    min_seconds: float
    max_seconds: float

    @property
    def certain_seconds(self) -> float:
        """Return how far it differs at least, whatever the network took."""
        return max(self.min_seconds, -self.max_seconds, 0.0)


def clock_skew(date: datetime, sent: datetime, received: datetime) -> ClockSkew:
    """Return the difference, given the server's time and when we asked and were answered."""
    least = (sent - (date + DATE_RESOLUTION)).total_seconds()
    return ClockSkew(least, (received - date).total_seconds())


def check_clock(date: datetime | None, sent: datetime, received: datetime) -> Finding:
    """Return whether the clocks agree."""
    if date is None:
        return warning(CLOCK_CHECK, "the API server does not say what time it is")
    apart = clock_skew(date, sent, received)
    if apart.certain_seconds < WARNING_SECONDS:
        bound = max(abs(apart.min_seconds), abs(apart.max_seconds))
        return ok(CLOCK_CHECK, f"within {precise_duration(bound)} of the API server's")
    way = "ahead of" if apart.min_seconds > 0 else "behind"
    said = f"at least {precise_duration(apart.certain_seconds)} {way} the API server's"
    return (problem if apart.certain_seconds >= PROBLEM_SECONDS else warning)(
        CLOCK_CHECK, said, _SYNCHRONISE
    )
