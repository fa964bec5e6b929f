"""The rate limit of a queue: how many reservations may be granted now, and when the next.

Starts are told apart by the time they were written with, but their age is counted on this
replica's own monotonic clock: from when it first saw them, or saw the last of their jobs admitted,
because a reservation may be granted some time before. So no wall clock can make room early; only
what an operator finds as it starts has nothing else to go by.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Final

from asyncjob_operator.core.admission.reservations import Reservation, StartRecord
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import StartRateLimit

MERGE_SHARES: Final = 50
"""Starts within so small a share of the period are kept as one, as if they were all the last."""

_time = attrgetter("time")


@dataclass(frozen=True, slots=True)
class Allowance:
    """So many places may be given now; `next_at` is when, on the monotonic clock, there is more."""

    count: int
    next_at: float | None


class RateWindow:
    """When this replica first saw the starts of one queue."""

    def __init__(self) -> None:
        self._observed_at: dict[StartRecord, float] = {}
        self._admitted: set[Reservation] = set()

    def observe_starts(self, starts: Iterable[StartRecord], now: Now, *, live: bool) -> None:
        """Take the starts as they are in the book; `live`: they came as a change, not in a list."""
        before, self._observed_at = self._observed_at, {}
        for entry in starts:
            first = before.get(entry)
            if first is None:
                age = 0.0 if live else max(0.0, -now.seconds_until(entry.time))
                first = now.monotonic - age
            self._observed_at[entry] = first

    def observe_reservations(
        self, reservations: Iterable[tuple[Reservation, bool]], now: Now
    ) -> None:
        """Take the places there are, and whether the job of each has been admitted."""
        before, self._admitted = self._admitted, set()
        for place, admitted in reservations:
            if admitted:
                self._admitted.add(place)
            if place not in before:
                self._refresh_start(place, now)

    def _refresh_start(self, reservation: Reservation, now: Now) -> None:
        """Let the start that a place belongs to be as of now."""
        later = [entry for entry in self._observed_at if entry.time >= reservation.time]
        if later or self._observed_at:
            entry = min(later, key=_time) if later else max(self._observed_at, key=_time)
            self._observed_at[entry] = now.monotonic

    def allowance(self, rate: StartRateLimit, now: Now) -> Allowance:
        """Return what the rate allows now."""
        recent = self._counted(rate, now)
        used = sum(entry.count for _, entry in recent)
        oldest = min((at for at, _ in recent), default=None)
        return Allowance(
            max(0, rate.count - used), None if oldest is None else oldest + rate.period_seconds
        )

    def recent_starts(
        self, rate: StartRateLimit, new_starts: int, now: Now
    ) -> tuple[StartRecord, ...]:
        """Return the starts to write: those that still count, and so many more now."""
        recent = sorted(self._counted(rate, now), key=itemgetter(0))
        if not new_starts:
            return tuple(entry for _, entry in recent)
        if recent and recent[-1][0] > now.monotonic - rate.period_seconds / MERGE_SHARES:
            new_starts += recent.pop()[1].count
        return (*(entry for _, entry in recent), StartRecord(now.timestamp, new_starts))

    def _counted(self, rate: StartRateLimit, now: Now) -> list[tuple[float, StartRecord]]:
        since = now.monotonic - rate.period_seconds
        return [(at, entry) for entry, at in self._observed_at.items() if at > since]
