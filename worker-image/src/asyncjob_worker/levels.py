"""The order of queued jobs within one priority: lanes of types, mine and others'. Pure.

Nothing here is looked at twice: what may not be claimed now waits where it is found again at once.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

Barred = AbstractSet[str]
"""Limited types of which as many are at work as may be."""

NONE: Final[Barred] = frozenset()


@dataclass(slots=True)
class Lane:
    """Jobs of one priority that wait for the same: mine by number of arrival, others' by rank.

    `held_back` have crashed before, and their turn came while another such job was running.
    """

    # No dict: finding its first key walks over all that were taken out before.
    mine: deque[tuple[int, str]] = field(default_factory=deque)
    others: dict[int, deque[tuple[float, str]]] = field(default_factory=dict)
    held_back: deque[str] = field(default_factory=deque)

    @property
    def empty(self) -> bool:
        """Whether nothing waits here."""
        return not (self.mine or self.others or self.held_back)

    def pop_other(self, rank: int) -> str:
        """Take off the first of another rank."""
        _, name = self.others[rank].popleft()
        if not self.others[rank]:
            del self.others[rank]
        return name


@dataclass(slots=True)
class Level:
    """The jobs of one priority; `dry_since` is when mine ran out.

    Each limited type has a lane of its own, so that no job of it is looked at while it is barred.
    """

    lanes: dict[str, Lane] = field(default_factory=dict)
    dry_since: float | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing waits here."""
        return all(lane.empty for lane in self.lanes.values())

    def file(self, key: str, name: str, rank: int, now: float, number: int) -> None:
        """Take a job into a lane; `number` grows with each."""
        lane = self.lanes.setdefault(key, Lane())
        if rank == 0:
            lane.mine.append((number, name))
        else:
            lane.others.setdefault(rank, deque()).append((now, name))

    def turns(
        self, now: float, steal_after: float, *, crashed_too: bool, barred: Barred
    ) -> Iterator[tuple[str, str]]:
        """Take names off with their lanes, in the order in which they may be claimed now."""
        lanes = {key: lane for key, lane in self.lanes.items() if key not in barred}
        for key, lane in lanes.items():
            while crashed_too and lane.held_back:
                yield key, lane.held_back.popleft()
        while (first := _first(lanes)) is not None:
            self.dry_since = None
            yield first, lanes[first].mine.popleft()[1]
        if self.dry_since is None:
            self.dry_since = now
        for key, lane in lanes.items():
            for rank in sorted(lane.others):
                while rank in lane.others and self._ready_at(lane, rank, steal_after) <= now:
                    yield key, lane.pop_other(rank)

    def ready_at(self, steal_after: float, barred: Barred) -> float | None:
        """Return when the next of the others' jobs may be taken."""
        lanes = (lane for key, lane in self.lanes.items() if key not in barred)
        times = (self._ready_at(lane, rank, steal_after) for lane in lanes for rank in lane.others)
        return min(times, default=None)

    def _ready_at(self, lane: Lane, rank: int, steal_after: float) -> float:
        arrived = lane.others[rank][0][0]
        return max(arrived, self.dry_since or arrived) + rank * steal_after


def _first(lanes: Mapping[str, Lane]) -> str | None:
    """Return the lane whose first job of mine has waited longest."""
    waiting = [(lane.mine[0], key) for key, lane in lanes.items() if lane.mine]
    return min(waiting)[1] if waiting else None
