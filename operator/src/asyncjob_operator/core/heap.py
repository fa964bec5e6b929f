"""Heaps of keys by rank. A key is in a heap once; setting a new rank replaces the old one."""

import heapq
from typing import Generic, TypeVar

R = TypeVar("R", float, tuple[float, float, str], tuple[int, int, float, str])
"""What keys are sorted by."""

_SLACK = 64
"""Outdated entries that are tolerated in addition before the heap is rebuilt."""


class KeyedHeap(Generic[R]):
    """Keys by rank, the least first; a change takes logarithmic time."""

    def __init__(self) -> None:
        self._ranks: dict[str, R] = {}
        self._heap: list[tuple[R, str]] = []

    def __len__(self) -> int:
        return len(self._ranks)

    def set(self, key: str, rank: R | None) -> None:
        """Set the key's rank; None removes the key."""
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
        """Return the least rank and its key, None if there is no key."""
        while self._heap and self._ranks.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None

    def _rebuild(self) -> None:
        self._heap = [(rank, key) for key, rank in self._ranks.items()]
        heapq.heapify(self._heap)


class TimerHeap(KeyedHeap[float]):
    """Keys by deadline, in monotonic seconds."""

    def time_of(self, key: str) -> float | None:
        """Return the key's deadline, None if it has none."""
        return self._ranks.get(key)

    def next_time(self) -> float | None:
        """Return the earliest deadline."""
        first = self.first()
        return first[0] if first else None

    def pop_due(self, now: float, limit: int) -> list[str]:
        """Remove and return at most `limit` keys that are due, the most overdue first."""
        keys: list[str] = []
        while len(keys) < limit and (first := self.first()) is not None and first[0] <= now:
            self.set(first[1], None)
            keys.append(first[1])
        return keys
