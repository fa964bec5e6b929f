"""The one heap of deadlines that drives time: which key to look at next, and when."""

import heapq

_SLACK = 1024
"""So many outdated entries are not worth a rebuild."""


class DeadlineHeap:
    """At most one deadline per key; a new one replaces the old. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: str, at: float | None) -> None:
        """Look at the key at this time; None: not at all."""
        if at is None:
            self._due.pop(key, None)
            return
        if self._due.get(key) == at:
            return
        self._due[key] = at
        heapq.heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._rebuild()

    def next_at(self) -> float | None:
        """Return the earliest deadline."""
        while self._heap and self._outdated(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float, limit: int) -> list[str]:
        """Remove and return at most `limit` keys whose time has come, the most overdue first."""
        keys: list[str] = []
        while len(keys) < limit and (at := self.next_at()) is not None and at <= now:
            _, key = heapq.heappop(self._heap)
            del self._due[key]
            keys.append(key)
        return keys

    def _outdated(self, at: float, key: str) -> bool:
        return self._due.get(key) != at

    def _rebuild(self) -> None:
        self._heap = [(at, key) for key, at in self._due.items()]
        heapq.heapify(self._heap)
