"""Which handler types the workers of one queue list, and since when one is missing among them.

A doubt must make nobody a dead letter, so two things are asked differently. Is anybody there who
would know: only a worker counts that has renewed its Lease under this replica's eyes, not long
ago, and still claims jobs. Does nobody know the type: each Lease that names a process counts,
draining and silent ones included.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from asyncjob.announcement import announced
from asyncjob.json_types import JsonObject, child, flag, integer, text, texts
from asyncjob.names import QUEUE_LABEL

NEVER: Final = float("-inf")
MAX_REMEMBERED: Final = 10_000
MAX_SLOTS: Final = 100_000
"""A Lease says what its worker likes; more than so many jobs no worker runs at once."""


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

    def counts_like(self, other: "Entry") -> bool:
        """Return whether it says the same of types and slots, whenever it was renewed."""
        mine = (bool(self.worker), self.types, self.draining, self.slots)
        return mine == (bool(other.worker), other.types, other.draining, other.slots)

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
        slots=min(max(integer(about, "slots"), 0), MAX_SLOTS),
    )


def queue_of(lease: JsonObject) -> str:
    """Return the queue that the worker of a Lease serves, empty if it does not say."""
    return text(child(child(lease, "metadata"), "labels"), QUEUE_LABEL)


@dataclass(frozen=True, slots=True)
class Concerned:
    """The types whose jobs are to be looked at again, since who knows them has changed."""

    types: frozenset[str] = frozenset()
    every: bool = False

    def __bool__(self) -> bool:
        return self.every or bool(self.types)

    def __or__(self, other: "Concerned") -> "Concerned":
        return Concerned(self.types | other.types, self.every or other.every)


NOBODY: Final = Concerned()
EVERYBODY: Final = Concerned(every=True)


class RollCall:
    """The workers of one queue by the names of their pods; times are monotonic seconds.

    What is asked for each job is counted as workers come and go, and costs nothing then.
    """

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._listed: Counter[str] = Counter()
        self._mute = 0
        self._live_until: dict[str, float] = {}
        self._attended_since = NEVER
        self._lost_at: dict[str, float] = {}
        self._doubt_until = NEVER
        self.workers = 0
        """So many take jobs."""
        self.slots = 0
        """So many jobs do they run at once."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def take(self, pod: str, entry: Entry, now: float) -> Concerned:
        """Take a Lease as it is now and return whose jobs that matters to."""
        before, attended = self._entries.get(pod), self._attended(now)
        self._entries[pod] = entry
        if not entry.claims:
            self._live_until.pop(pod, None)
        elif before and (before.worker, before.renewed) != (entry.worker, entry.renewed):
            self._live_until[pod] = now + entry.duration
        concerned = self._replace(before, entry, now)
        if not attended and self._attended(now):
            self._attended_since = now
            return EVERYBODY
        return concerned

    def lose(self, pod: str, now: float) -> Concerned:
        """Take that a Lease is gone and return whose jobs that matters to."""
        self._live_until.pop(pod, None)
        return self._replace(self._entries.pop(pod, None), None, now)

    def knows(self, job_type: str) -> bool:
        """Return whether a worker may know the type, or none is there to know it."""
        return self._may_know(job_type) or not self.workers

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
        return self._mute > 0 or self._listed[job_type] > 0

    def _replace(self, before: Entry | None, after: Entry | None, now: float) -> Concerned:
        """Count one worker anew, and note what was listed up to now and no longer is."""
        if before and after and before.counts_like(after):
            return NOBODY
        anybody = self.workers > 0
        self._count(after, 1)
        self._count(before, -1)
        concerned = self._forget_types(before, now) | self._learn_types(before, after)
        return concerned if anybody == (self.workers > 0) else EVERYBODY

    def _count(self, entry: Entry | None, sign: int) -> None:
        if entry is None or not entry.worker:
            return
        self.workers += sign * entry.claims
        self.slots += sign * entry.slots * entry.claims
        if entry.types is None:
            self._mute += sign
            return
        for job_type in entry.types:
            self._listed[job_type] += sign
            if not self._listed[job_type]:
                del self._listed[job_type]

    def _learn_types(self, before: Entry | None, after: Entry | None) -> Concerned:
        """Return the types that one worker alone may know, and has not known before."""
        if after is None or not after.worker:
            return NOBODY
        if after.types is None:
            return EVERYBODY
        old = before.types if before and before.worker and before.types else frozenset[str]()
        new = after.types - old
        return Concerned(frozenset(one for one in new if self._listed[one] == 1))

    def _forget_types(self, before: Entry | None, now: float) -> Concerned:
        if before is None or not before.worker:
            return NOBODY
        if before.types is None:
            self._doubt_until = now
            return EVERYBODY
        lost = frozenset(one for one in before.types if not self._may_know(one))
        if len(self._lost_at) + len(lost) > MAX_REMEMBERED:
            self._lost_at.clear()
            self._doubt_until = now
        self._lost_at.update(dict.fromkeys(lost, now))
        return Concerned(lost)
