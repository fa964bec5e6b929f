"""The rate limit of a queue: how many reservations may be granted now, and when the next.

Starts are identified by the time they were written with, but their age is counted on this replica's
own monotonic clock: from when it first saw them, or saw the last of their jobs admitted, because a
reservation may be granted some time before. So no wall clock can free capacity early. Only the age
of starts that an operator finds when it starts is taken from the wall clock.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Final

from asyncjob_operator.core.admission.reservations import Reservation, StartRecord
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import StartRateLimit

MERGE_SHARES: Final = 50
"""Starts within this fraction of the period are stored as one, all with the time of the last."""

_time = attrgetter("time")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a rate limit allows."""

    count: int
    """Reservations that may be granted now."""

    next_at: float | None
    """When more may be granted, in monotonic seconds; None if no start counts now."""


class RateWindow:
    """The recent starts of one queue, and when this replica saw them."""

    def __init__(self) -> None:
        self._observed_at: dict[StartRecord, float] = {}
        self._admitted: set[Reservation] = set()

    def observe_starts(
        self, starts: Iterable[StartRecord], now: Now, *, just_changed: bool
    ) -> None:
        """Record the starts in the queue's status, which was seen as it changed or in a list.

        Starts of one time count together: a time that is taken from the API server's answers has
        whole seconds, so that several rounds may have the same.
        """
        counts: Counter[str] = Counter()
        for start in starts:
            counts[start.time] += start.count
        previous, self._observed_at = self._observed_at, {}
        for start in map(StartRecord, counts.keys(), counts.values()):
            observed_at = previous.get(start)
            if observed_at is None:
                age = 0.0 if just_changed else max(0.0, -now.seconds_until(start.time))
                observed_at = now.monotonic - age
            self._observed_at[start] = observed_at

    def observe_reservations(
        self, reservations: Iterable[tuple[Reservation, bool]], now: Now
    ) -> None:
        """Record the reservations, and whether the job of each has been admitted."""
        previous, self._admitted = self._admitted, set()
        for reservation, admitted in reservations:
            if admitted:
                self._admitted.add(reservation)
            if reservation not in previous:
                self._refresh_start(reservation, now)

    def _refresh_start(self, reservation: Reservation, now: Now) -> None:
        """Count the start that a reservation belongs to as of now."""
        later = [start for start in self._observed_at if start.time >= reservation.time]
        if later or self._observed_at:
            start = min(later, key=_time) if later else max(self._observed_at, key=_time)
            self._observed_at[start] = now.monotonic

    def allowance(self, rate: StartRateLimit, now: Now) -> Allowance:
        """Return what the rate limit allows now."""
        recent = self._counted(rate, now)
        used = sum(start.count for _, start in recent)
        oldest = min((at for at, _ in recent), default=None)
        return Allowance(
            max(0, rate.count - used), None if oldest is None else oldest + rate.period_seconds
        )

    def recent_starts(
        self, rate: StartRateLimit, new_starts: int, now: Now
    ) -> tuple[StartRecord, ...]:
        """Return the starts to write: those that still count, and `new_starts` more now."""
        recent = sorted(self._counted(rate, now), key=itemgetter(0))
        if not new_starts:
            return tuple(start for _, start in recent)
        if recent and recent[-1][0] > now.monotonic - rate.period_seconds / MERGE_SHARES:
            new_starts += recent.pop()[1].count
        return (*(start for _, start in recent), StartRecord(now.timestamp, new_starts))

    def _counted(self, rate: StartRateLimit, now: Now) -> list[tuple[float, StartRecord]]:
        since = now.monotonic - rate.period_seconds
        return [(at, start) for start, at in self._observed_at.items() if at > since]
