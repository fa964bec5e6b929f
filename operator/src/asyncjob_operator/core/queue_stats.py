"""The statistics of a queue in its status, with the Drained condition, and its throughput."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.lifecycle.phases import Phase

DRAINED: Final = "Drained"
MINUTE: Final = 60.0
MAX_INT32: Final = 2_147_483_647
"""The largest number that the schema allows; a status with a larger one would be refused."""

_STATS_FIELDS: Final[Iterable[str]] = (
    "counts",
    "oldestQueuedSeconds",
    "workers",
    "slots",
    "finishedPerMinute",
    "conditions",
)


class DrainedReason(StrEnum):
    """Reasons of the condition Drained; `asyncjob explain` knows them."""

    NOTHING_RUNS = "NothingRuns"
    OPEN = "Open"


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The statistics of a queue."""

    counts: Mapping[Phase, int]
    oldest_queued_seconds: int
    """For how many seconds the oldest job that could start has waited."""

    workers: int
    slots: int
    finished_per_minute: int
    paused: bool

    @property
    def drained(self) -> bool:
        """Return whether the queue is paused and none of its jobs runs."""
        return self.paused and not self.counts.get(Phase.RUNNING)


def stats_fields(stats: QueueStats, status: JsonObject, now: str) -> dict[str, Json] | None:
    """Return the fields to write, None if the status has these values already."""
    fields: dict[str, Json] = {
        "counts": [
            {"phase": phase.value, "count": _bounded(stats.counts[phase])}
            for phase in Phase
            if stats.counts.get(phase)
        ],
        "oldestQueuedSeconds": _bounded(stats.oldest_queued_seconds),
        "workers": _bounded(stats.workers),
        "slots": _bounded(stats.slots),
        "finishedPerMinute": _bounded(stats.finished_per_minute),
        "conditions": [_drained_condition(status, now, holds=stats.drained)],
    }
    if all(status.get(name) == value for name, value in fields.items()):
        return None
    return {**fields, "lastUpdateTime": now}


def shown_stats(queue: JsonObject) -> JsonObject:
    """Return the statistics that an AsyncQueue's status shows."""
    status = child(queue, "status")
    return {name: status[name] for name in _STATS_FIELDS if name in status}


def _drained_condition(stored: JsonObject, now: str, *, holds: bool) -> JsonObject:
    """Return the condition; it keeps its transition time while its status does not change."""
    status = str(holds)
    for condition in map(as_object, items(stored, "conditions")):
        if text(condition, "type") == DRAINED and text(condition, "status") == status:
            return condition
    return {
        "type": DRAINED,
        "status": status,
        "reason": (DrainedReason.NOTHING_RUNS if holds else DrainedReason.OPEN).value,
        "lastTransitionTime": now,
    }


def _bounded(number: int) -> int:
    return min(max(number, 0), MAX_INT32)


class Throughput:
    """How many jobs finished within the last minute, by monotonic time in whole seconds."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, int]] = deque()

    def record_finished(self, now: float) -> None:
        """Count a finished job."""
        second, count = int(now), 1
        if self._seconds and self._seconds[-1][0] == second:
            count += self._seconds.pop()[1]
        self._seconds.append((second, count))
        self._expire(now)

    def per_minute(self, now: float) -> int:
        """Return how many jobs finished within the last minute."""
        self._expire(now)
        return sum(count for _, count in self._seconds)

    def _expire(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= now - MINUTE:
            self._seconds.popleft()
