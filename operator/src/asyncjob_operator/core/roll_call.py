"""Which handler types the workers of one queue list, and since when one is missing among them.

A doubt must make nobody a dead letter, so two things are asked differently. Is anybody there who
would know: only a worker counts that has renewed its Lease under this replica's eyes, not long
ago, and still claims jobs. Does nobody know the type: each Lease that names a process counts,
draining and silent ones included.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.announcement import announced
from asyncjob.json_types import JsonObject, child, flag, integer, text, texts
from asyncjob.names import QUEUE_LABEL

NEVER: Final = float("-inf")
MAX_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """What a worker's Lease says; `worker` is empty once it is withdrawn.

    `types` is None where the Lease does not say. `duration` is in seconds.
    """

    worker: str
    renewed: str
    duration: int
    types: frozenset[str] | None
    draining: bool = False
    slots: int = 0

    @property
    def claims(self) -> bool:
        """Return whether the worker still takes jobs."""
        return bool(self.worker) and not self.draining

    def may_know(self, job_type: str) -> bool:
        """Return whether the worker lists the type, or does not say what it lists."""
        return bool(self.worker) and (self.types is None or job_type in self.types)


@dataclass(frozen=True, slots=True)
class Missing:
    """A type that no worker of the queue lists, though some are live; `since` is monotonic."""

    since: float
    workers: int
    listed: tuple[str, ...]


def read_entry(lease: JsonObject) -> Entry:
    """Read a worker's Lease."""
    spec = child(lease, "spec")
    about = announced(lease)
    return Entry(
        worker=text(spec, "holderIdentity"),
        renewed=text(spec, "renewTime"),
        duration=integer(spec, "leaseDurationSeconds"),
        types=frozenset(texts(about, "types")) if "types" in about else None,
        draining=flag(about, "draining"),
        slots=integer(about, "slots"),
    )


def queue_of(lease: JsonObject) -> str:
    """Return the queue that the worker of a Lease serves, empty if it does not say."""
    return text(child(child(lease, "metadata"), "labels"), QUEUE_LABEL)


class RollCall:
    """The workers of one queue by the names of their pods; times are monotonic seconds."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._live_until: dict[str, float] = {}
        self._attended_since = NEVER
        self._lost_at: dict[str, float] = {}
        self._doubt_until = NEVER

    def __bool__(self) -> bool:
        return bool(self._entries)

    def take(self, pod: str, entry: Entry, now: float) -> bool:
        """Take a Lease as it is now and return whether a type may have come to be missing."""
        before, attended = self._entries.get(pod), self._attended(now)
        self._entries[pod] = entry
        if not entry.claims:
            self._live_until.pop(pod, None)
        elif before and (before.worker, before.renewed) != (entry.worker, entry.renewed):
            self._live_until[pod] = now + entry.duration
        began = not attended and self._attended(now)
        if began:
            self._attended_since = now
        return self._miss(before, now) or began

    def lose(self, pod: str, now: float) -> bool:
        """Take that a Lease is gone and return whether a type may have come to be missing."""
        self._live_until.pop(pod, None)
        return self._miss(self._entries.pop(pod, None), now)

    @property
    def slots(self) -> int:
        """Return how many jobs the workers that take any run at once."""
        return sum(entry.slots for entry in self._entries.values() if entry.claims)

    @property
    def workers(self) -> int:
        """Return how many workers take jobs."""
        return sum(entry.claims for entry in self._entries.values())

    def knows(self, job_type: str) -> bool:
        """Return whether a worker may know the type, or none is there to know it."""
        return self._may_know(job_type) or not any(entry.claims for entry in self._entries.values())

    def missing(self, job_type: str, now: float) -> Missing | None:
        """Return since when the type is missing, or None if it is not, or nobody can tell."""
        if not self._attended(now) or self._may_know(job_type):
            return None
        lost_at = self._lost_at.get(job_type, NEVER)
        live = [self._entries[pod] for pod, until in self._live_until.items() if until >= now]
        listed = frozenset[str]().union(*(entry.types or () for entry in live))
        since = max(self._attended_since, lost_at, self._doubt_until)
        return Missing(since, len(live), tuple(sorted(listed)))

    def _attended(self, now: float) -> bool:
        return any(until >= now for until in self._live_until.values())

    def _may_know(self, job_type: str) -> bool:
        return any(entry.may_know(job_type) for entry in self._entries.values())

    def _miss(self, before: Entry | None, now: float) -> bool:
        """Note what was listed up to now and no longer is."""
        if before is None or not before.worker:
            return False
        if before.types is None:
            self._doubt_until = now
            return True
        lost = [job_type for job_type in before.types if not self._may_know(job_type)]
        if len(self._lost_at) + len(lost) > MAX_REMEMBERED:
            self._lost_at.clear()
            self._doubt_until = now
        self._lost_at.update(dict.fromkeys(lost, now))
        return bool(lost)
