"""One round of admission, planned: which places are over, and who gets a new one."""

from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto

from asyncjob_operator.core.admission.book import Book, Place, Starts
from asyncjob_operator.core.admission.limits import MAX_PLACES, Limits
from asyncjob_operator.core.admission.line import Line, Waiting
from asyncjob_operator.core.admission.pace import Pace, Room
from asyncjob_operator.core.moment import Moment


class Fate(Enum):
    """What has become of a place."""

    WAITING = auto()
    """Its job is to be admitted yet."""

    KEPT = auto()
    """Its job has been admitted, and the limits still count it."""

    OVER = auto()
    """It can be given to another."""

    UNKNOWN = auto()
    """Its job is not known here, or perhaps as it was before: a live read has to say."""


_ADMITTED = (Fate.KEPT, Fate.OVER)


@dataclass(frozen=True, slots=True)
class Table:
    """All that bears on who gets a place in one queue.

    `occupants` are the jobs that run or may be claimed any moment, with their keys. `slots` is how
    many jobs the queue's workers run at once, None if that is not known.
    """

    limits: Limits
    paused: bool
    book: Book
    occupants: Mapping[str, str]
    line: Line
    pace: Pace
    slots: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write into the book of this version, and when to plan again by time alone."""

    version: str
    places: tuple[Place, ...]
    starts: tuple[Starts, ...]
    taken: tuple[Waiting, ...]
    freed: int
    next_at: float | None


def make_plan(table: Table, fate: Callable[[Place], Fate], now: Moment) -> Plan:
    """Plan a round. Who is taken leaves the line: if the plan fails, they have to be put back."""
    fates = {place: fate(place) for place in table.book.places.values()}
    kept = [place for place, its in fates.items() if its is not Fate.OVER]
    table.pace.follow([(place, its in _ADMITTED) for place, its in fates.items()], now)
    room = table.pace.room(table.limits.rate, now) if table.limits.rate else None
    taken = _take(table, kept, room)
    new = [Place(who.uid, who.name, who.stay, who.key, now.text) for who in taken]
    freed = len(table.book.places) - len(kept)
    waits = bool(len(table.line)) and room is not None
    return Plan(
        version=table.book.version,
        places=(*kept, *new),
        starts=table.pace.keep(table.limits.rate, len(new), now) if table.limits.rate else (),
        taken=tuple(taken),
        freed=freed,
        next_at=room.next_at if room and waits else None,
    )


def _take(table: Table, kept: list[Place], room: Room | None) -> list[Waiting]:
    free = _free(table, {place.uid for place in kept}, len(kept), room)
    if free <= 0 or not len(table.line):
        return []
    per_key = table.limits.per_key
    if per_key is None:
        return table.line.take(free, lambda _: True)
    used = Counter(_keys(table.occupants, kept))

    def may_have(key: str) -> bool:
        if key and used[key] >= per_key:
            return False
        used[key] += 1
        return True

    return table.line.take(free, may_have)


def _keys(occupants: Mapping[str, str], kept: list[Place]) -> list[str]:
    return [*occupants.values(), *(place.key for place in kept if place.uid not in occupants)]


def _free(table: Table, placed: AbstractSet[str], places: int, room: Room | None) -> int:
    """Return how many places may be given at most, whatever the keys."""
    if table.paused:
        return 0
    limits = table.limits
    busy = len(placed | table.occupants.keys())
    bounds = [MAX_PLACES - places]
    if limits.concurrency is not None:
        bounds.append(limits.concurrency - busy)
    if table.slots is not None:
        # Who is admitted waits among the workers' jobs, where no key has its turn any more.
        bounds.append(table.slots + max(1, table.slots // 2) - busy)
    if room is not None:
        bounds.append(room.count)
    return min(bounds)
