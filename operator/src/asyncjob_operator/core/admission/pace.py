"""The rate limit of a queue: how many places may be given now, and when the next.

Starts are told apart by the time they were written with, but their age is counted on this replica's
own monotonic clock: from when it first saw them, or saw the last of their jobs admitted, because a
place may be given some time before. So nobody's wall clock can make room early; only what an
operator finds as it starts has nothing else to go by.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Final

from asyncjob_operator.core.admission.book import Place, Starts
from asyncjob_operator.core.admission.limits import Rate
from asyncjob_operator.core.moment import Moment

SHARES: Final = 50
"""Starts within so small a share of the period are kept as one, as if they were all the last."""

_time = attrgetter("time")


@dataclass(frozen=True, slots=True)
class Room:
    """So many places may be given now; `next_at` is when, on the monotonic clock, there is more."""

    count: int
    next_at: float | None


class Pace:
    """When this replica first saw the starts of one queue."""

    def __init__(self) -> None:
        self._seen: dict[Starts, float] = {}
        self._begun: set[Place] = set()

    def saw(self, starts: Iterable[Starts], now: Moment, *, live: bool) -> None:
        """Take the starts as they are in the book; `live`: they came as a change, not in a list."""
        before, self._seen = self._seen, {}
        for entry in starts:
            first = before.get(entry)
            if first is None:
                age = 0.0 if live else max(0.0, -now.until(entry.time))
                first = now.monotonic - age
            self._seen[entry] = first

    def follow(self, places: Iterable[tuple[Place, bool]], now: Moment) -> None:
        """Take the places there are, and whether the job of each has been admitted."""
        before, self._begun = self._begun, set()
        for place, admitted in places:
            if admitted:
                self._begun.add(place)
            if place not in before:
                self._renew(place, now)

    def _renew(self, place: Place, now: Moment) -> None:
        """Let the start that a place belongs to be as of now."""
        later = [entry for entry in self._seen if entry.time >= place.time]
        if later or self._seen:
            entry = min(later, key=_time) if later else max(self._seen, key=_time)
            self._seen[entry] = now.monotonic

    def room(self, rate: Rate, now: Moment) -> Room:
        """Return what the rate allows now."""
        recent = self._recent(rate, now)
        used = sum(entry.count for _, entry in recent)
        oldest = min((at for at, _ in recent), default=None)
        return Room(max(0, rate.count - used), None if oldest is None else oldest + rate.period)

    def keep(self, rate: Rate, taken: int, now: Moment) -> tuple[Starts, ...]:
        """Return the starts to write: those that still count, and so many more now."""
        recent = sorted(self._recent(rate, now), key=itemgetter(0))
        if not taken:
            return tuple(entry for _, entry in recent)
        if recent and recent[-1][0] > now.monotonic - rate.period / SHARES:
            taken += recent.pop()[1].count
        return (*(entry for _, entry in recent), Starts(now.text, taken))

    def _recent(self, rate: Rate, now: Moment) -> list[tuple[float, Starts]]:
        since = now.monotonic - rate.period
        return [(at, entry) for entry, at in self._seen.items() if at > since]
