"""Whether the clock here agrees with the API server's. Pure: another question has the times."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from asyncjob.cli.doctor.finding import Finding, ok, problem, warning
from asyncjob.cli.durations import exactly

CHECK: Final = "Clock"
NOTICED: Final = 5.0
"""Seconds from which the ages shown here are wrong."""
HARMFUL: Final = 300.0
"""Seconds from which tokens and times given here mean something else there."""
RESOLUTION: Final = timedelta(seconds=1)
"""A Date header is cut to the second."""

_WAY: Final = "synchronise this machine's clock (NTP)"


@dataclass(frozen=True, slots=True)
class Difference:
    """How far this clock is ahead, in seconds: somewhere between the two."""

    least: float
    most: float

    @property
    def surely(self) -> float:
        """Return how far it differs at least, whatever the network took."""
        return max(self.least, -self.most, 0.0)


def difference(date: datetime, sent: datetime, received: datetime) -> Difference:
    """Return the difference, given the server's time and when we asked and were answered."""
    least = (sent - (date + RESOLUTION)).total_seconds()
    return Difference(least, (received - date).total_seconds())


def judge(date: datetime | None, sent: datetime, received: datetime) -> Finding:
    """Return whether the clocks agree."""
    if date is None:
        return warning(CHECK, "the API server does not say what time it is")
    apart = difference(date, sent, received)
    if apart.surely < NOTICED:
        bound = max(abs(apart.least), abs(apart.most))
        return ok(CHECK, f"within {exactly(bound)} of the API server's")
    way = "ahead of" if apart.least > 0 else "behind"
    said = f"at least {exactly(apart.surely)} {way} the API server's"
    return (problem if apart.surely >= HARMFUL else warning)(CHECK, said, _WAY)
