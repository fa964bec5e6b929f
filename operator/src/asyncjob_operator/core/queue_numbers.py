"""The numbers of a queue as its status shows them, and since when it is drained."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.lifecycle.phases import Phase

DRAINED: Final = "Drained"
MINUTE: Final = 60.0
MOST: Final = 2_147_483_647
"""The schema takes no larger number; a status with one would be refused again and again."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """How a queue is doing; `oldest` is the wait of the oldest job that could start, in s."""

    counts: Mapping[Phase, int]
    oldest: int
    workers: int
    slots: int
    finished_per_minute: int
    paused: bool

    @property
    def drained(self) -> bool:
        """Return whether the queue is paused and none of its jobs runs."""
        return self.paused and not self.counts.get(Phase.RUNNING)


def status_fields(numbers: Numbers, before: JsonObject, now: str) -> dict[str, Json] | None:
    """Return the fields to write, None if the status says the same already."""
    fields: dict[str, Json] = {
        "counts": [
            {"phase": phase.value, "count": _bounded(numbers.counts[phase])}
            for phase in Phase
            if numbers.counts.get(phase)
        ],
        "oldestQueuedSeconds": _bounded(numbers.oldest),
        "workers": _bounded(numbers.workers),
        "slots": _bounded(numbers.slots),
        "finishedPerMinute": _bounded(numbers.finished_per_minute),
        "conditions": [_drained(before, now, holds=numbers.drained)],
    }
    if all(before.get(name) == value for name, value in fields.items()):
        return None
    return {**fields, "lastUpdateTime": now}


def _drained(before: JsonObject, now: str, *, holds: bool) -> JsonObject:
    """Return the condition; it keeps its time as long as it says the same."""
    status = str(holds)
    for known in map(as_object, items(before, "conditions")):
        if text(known, "type") == DRAINED and text(known, "status") == status:
            return known
    return {
        "type": DRAINED,
        "status": status,
        "reason": "NothingRuns" if holds else "Open",
        "lastTransitionTime": now,
    }


def _bounded(number: int) -> int:
    return min(max(number, 0), MOST)


class Throughput:
    """How many jobs finished within the last minute, by monotonic time in whole seconds."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()

    def note(self, now: float) -> None:
        """Count one."""
        second, count = int(now), 1
        if self._seconds and self._seconds[-1][0] == second:
            count += self._seconds.pop()[1]
        self._seconds.append((second, count))
        self._forget(now)

    def per_minute(self, now: float) -> int:
        """Return how many there were."""
        self._forget(now)
        return sum(count for _, count in self._seconds)

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= now - MINUTE:
            self._seconds.popleft()


def status_of(queue: JsonObject) -> JsonObject:
    """Return the numbers that an AsyncQueue shows now."""
    status = child(queue, "status")
    return {name: status[name] for name in _SHOWN if name in status}


_SHOWN: Final[Iterable[str]] = (
    "counts",
    "oldestQueuedSeconds",
    "workers",
    "slots",
    "finishedPerMinute",
    "conditions",
)
