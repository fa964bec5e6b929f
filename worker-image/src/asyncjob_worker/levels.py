"""The order of queued jobs within one priority: lanes of types, mine and others'. Pure.

Nothing here is looked at twice: what may not be claimed now waits where it is found again at once.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

SortKey = TypeVar("SortKey", int, float)

ExcludedTypes = AbstractSet[str]
"""Limited types of which as many are at work as may be."""

NO_TYPES: Final[ExcludedTypes] = frozenset()


@dataclass(slots=True)
class TypeQueue:
    """Jobs of one priority that wait for the same: mine by number of arrival, others' by rank.

    `deferred` have crashed before, and their turn came while another such job was running.
    """

    # No dict: finding its first key walks over all that were taken out before.
    own: deque[tuple[int, str]] = field(default_factory=deque)
    foreign: dict[int, deque[tuple[float, str]]] = field(default_factory=dict)
    deferred: deque[str] = field(default_factory=deque)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here."""
        return not (self.own or self.foreign or self.deferred)

    def compact(self, is_wanted: Callable[[str], bool]) -> None:
        """Forget the names that are not wanted, and all but the first time of each."""
        self.own = deque(_deduplicated(self.own, is_wanted))
        self.deferred = deque(dict.fromkeys(filter(is_wanted, self.deferred)))
        tidied = {
            rank: deque(_deduplicated(waiting, is_wanted)) for rank, waiting in self.foreign.items()
        }
        self.foreign = {rank: waiting for rank, waiting in tidied.items() if waiting}

    def pop_foreign(self, rank: int) -> str:
        """Take off the first of another rank."""
        _, name = self.foreign[rank].popleft()
        if not self.foreign[rank]:
            del self.foreign[rank]
        return name


@dataclass(slots=True)
class PriorityBucket:
    """The jobs of one priority; `own_exhausted_at` is when mine ran out.

    Each limited type has a lane of its own, so that no job of it is looked at while it is barred.
    """

    queues: dict[str, TypeQueue] = field(default_factory=dict)
    own_exhausted_at: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here."""
        return all(lane.is_empty for lane in self.queues.values())

    def add(self, key: str, name: str, rank: int, now: float, number: int) -> None:
        """Take a job into a lane; `number` grows with each."""
        lane = self.queues.setdefault(key, TypeQueue())
        if rank == 0:
            lane.own.append((number, name))
        else:
            lane.foreign.setdefault(rank, deque()).append((now, name))

    def claimable(
        self,
        now: float,
        takeover_delay: float,
        *,
        include_crashed: bool,
        excluded_types: ExcludedTypes,
    ) -> Iterator[tuple[str, str]]:
        """Take names off with their lanes, in the order in which they may be claimed now."""
        lanes = {key: lane for key, lane in self.queues.items() if key not in excluded_types}
        for key, lane in lanes.items():
            while include_crashed and lane.deferred:
                yield key, lane.deferred.popleft()
        while (first := _oldest_own(lanes)) is not None:
            self.own_exhausted_at = None
            yield first, lanes[first].own.popleft()[1]
        if self.own_exhausted_at is None:
            self.own_exhausted_at = now
        for key, lane in lanes.items():
            for rank in sorted(lane.foreign):
                while rank in lane.foreign and self._ready_at(lane, rank, takeover_delay) <= now:
                    yield key, lane.pop_foreign(rank)

    def compact(self, is_wanted: Callable[[str, str], bool]) -> None:
        """Forget the names that are not wanted; asked by lane and name."""
        for key, lane in list(self.queues.items()):
            lane.compact(partial(is_wanted, key))
            if lane.is_empty:
                del self.queues[key]

    def ready_at(self, takeover_delay: float, excluded_types: ExcludedTypes) -> float | None:
        """Return when the next of the others' jobs may be taken."""
        lanes = (lane for key, lane in self.queues.items() if key not in excluded_types)
        times = (
            self._ready_at(lane, rank, takeover_delay) for lane in lanes for rank in lane.foreign
        )
        return min(times, default=None)

    def _ready_at(self, queue: TypeQueue, rank: int, takeover_delay: float) -> float:
        arrived = queue.foreign[rank][0][0]
        return max(arrived, self.own_exhausted_at or arrived) + rank * takeover_delay


def _oldest_own(queues: Mapping[str, TypeQueue]) -> str | None:
    """Return the lane whose first job of mine has waited longest."""
    waiting = [(lane.own[0], key) for key, lane in queues.items() if lane.own]
    return min(waiting)[1] if waiting else None


def _deduplicated(
    waiting: Iterable[tuple[SortKey, str]], is_wanted: Callable[[str], bool]
) -> list[tuple[SortKey, str]]:
    first: dict[str, SortKey] = {}
    for mark, name in waiting:
        if is_wanted(name):
            first.setdefault(name, mark)
    return [(mark, name) for name, mark in first.items()]
