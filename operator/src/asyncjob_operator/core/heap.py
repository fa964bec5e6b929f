"""Heaps of keys: which one to look at next. A key is in it once; a new rank replaces the old."""

import heapq
from typing import Generic, TypeVar

R = TypeVar("R", float, tuple[float, float, str], tuple[int, int, float, str])
"""What keys are sorted by."""

_SLACK = 64
"""So many outdated entries are not worth a rebuild."""


class KeyedHeap(Generic[R]):
    """Keys by rank, the least first; each change costs the logarithm of their number."""

    def __init__(self) -> None:
        self._ranks: dict[str, R] = {}
        self._heap: list[tuple[R, str]] = []

    def __len__(self) -> int:
        return len(self._ranks)

    def set(self, key: str, rank: R | None) -> None:
        """Sort the key by this; None: take it out."""
        if rank is None:
            self._ranks.pop(key, None)
            return
        if self._ranks.get(key) == rank:
            return
        self._ranks[key] = rank
        heapq.heappush(self._heap, (rank, key))
        if len(self._heap) > 2 * len(self._ranks) + _SLACK:
            self._rebuild()

    def first(self) -> tuple[R, str] | None:
        """Return the least rank and whose it is, None if there is no key."""
        while self._heap and self._ranks.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    def _rebuild(self) -> None:
        self._heap = [(rank, key) for key, rank in self._ranks.items()]
        heapq.heapify(self._heap)


class DeadlineHeap(KeyedHeap[float]):
    """The one heap of deadlines that drives time. Times are monotonic seconds."""

    def deadline_of(self, key: str) -> float | None:
        """Return when to look at the key, None if not by time alone."""
        return self._ranks.get(key)

    def next_deadline(self) -> float | None:
        """Return the earliest deadline."""
        first = self.first()
        return first[0] if first else None

    def pop_due(self, now: float, limit: int) -> list[str]:
        """Remove and return at most `limit` keys whose time has come, the most overdue first."""
        keys: list[str] = []
        while len(keys) < limit and (first := self.first()) is not None and first[0] <= now:
            self.set(first[1], None)
            keys.append(first[1])
        return keys
