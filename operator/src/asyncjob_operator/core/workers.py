"""Workers as their Leases describe them: handler types, slots, and which Leases are stale.

A type counts as unserved only if a live worker is there that would list it: one that renewed its
Lease while this replica watched, and that still accepts jobs. Whether nobody serves the type is
asked of every Lease that names a process, draining and silent ones included. All times are counted
on this replica's own monotonic clock, so that no wall clock matters.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import JsonObject, child, flag, integer, text, texts
from asyncjob.names import QUEUE_LABEL, WORKER_LEASE_PREFIX
from asyncjob.worker_lease import read_registration

NEVER: Final = float("-inf")
MAX_REMEMBERED: Final = 10_000
MAX_SLOTS: Final = 100_000
"""A Lease says what its worker likes; more than so many jobs no worker runs at once."""


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """What a worker's Lease says; `worker` is empty once it is withdrawn.

    `types` is None where the Lease does not say. `duration` is in seconds.
    """

    worker: str
    renew_time: str
    duration: int
    types: frozenset[str] | None
    draining: bool = False
    slots: int = 0

    @property
    def accepts_jobs(self) -> bool:
        """Return whether the worker still takes jobs."""
        return bool(self.worker) and not self.draining

    def same_capacity(self, other: "WorkerRecord") -> bool:
        """Return whether it says the same of types and slots, whenever it was renewed."""
        mine = (bool(self.worker), self.types, self.draining, self.slots)
        return mine == (bool(other.worker), other.types, other.draining, other.slots)

    def may_handle(self, job_type: str) -> bool:
        """Return whether the worker lists the type, or does not say what it lists."""
        return bool(self.worker) and (self.types is None or job_type in self.types)


@dataclass(frozen=True, slots=True)
class UnservedType:
    """A type that no worker of the queue lists, though some are live; `since` is monotonic."""

    since: float
    live_workers: int
    listed_types: tuple[str, ...]


def read_worker_record(lease: JsonObject) -> WorkerRecord:
    """Read a worker's Lease."""
    spec = child(lease, "spec")
    about = read_registration(lease)
    return WorkerRecord(
        worker=text(spec, "holderIdentity"),
        renew_time=text(spec, "renewTime"),
        duration=integer(spec, "leaseDurationSeconds"),
        types=frozenset(texts(about, "types")) if "types" in about else None,
        draining=flag(about, "draining"),
        slots=min(max(integer(about, "slots"), 0), MAX_SLOTS),
    )


def queue_of_lease(lease: JsonObject) -> str:
    """Return the queue that the worker of a Lease serves, empty if it does not say."""
    return text(child(child(lease, "metadata"), "labels"), QUEUE_LABEL)


@dataclass(frozen=True, slots=True)
class AffectedTypes:
    """The types whose jobs are to be looked at again, since who knows them has changed."""

    types: frozenset[str] = frozenset()
    every: bool = False

    def __bool__(self) -> bool:
        return self.every or bool(self.types)

    def __or__(self, other: "AffectedTypes") -> "AffectedTypes":
        return AffectedTypes(self.types | other.types, self.every or other.every)


NO_TYPES: Final = AffectedTypes()
ALL_TYPES: Final = AffectedTypes(every=True)


class QueueWorkers:
    """The workers of one queue by the names of their pods; times are monotonic seconds.

    What is asked for each job is counted as workers come and go, and costs nothing then.
    """

    def __init__(self) -> None:
        self._records: dict[str, WorkerRecord] = {}
        self._type_counts: Counter[str] = Counter()
        self._undeclared = 0
        self._live_until: dict[str, float] = {}
        self._live_since = NEVER
        self._type_lost_at: dict[str, float] = {}
        self._uncertain_until = NEVER
        self.workers = 0
        """So many take jobs."""
        self.slots = 0
        """So many jobs do they run at once."""

    def __bool__(self) -> bool:
        return bool(self._records)

    def update(self, pod: str, record: WorkerRecord, now: float) -> AffectedTypes:
        """Take a Lease as it is now and return whose jobs that matters to."""
        before, attended = self._records.get(pod), self._has_live_worker(now)
        self._records[pod] = record
        if not record.accepts_jobs:
            self._live_until.pop(pod, None)
        elif before and (before.worker, before.renew_time) != (record.worker, record.renew_time):
            self._live_until[pod] = now + record.duration
        concerned = self._replace(before, record, now)
        if not attended and self._has_live_worker(now):
            self._live_since = now
            return ALL_TYPES
        return concerned

    def remove(self, pod: str, now: float) -> AffectedTypes:
        """Take that a Lease is gone and return whose jobs that matters to."""
        self._live_until.pop(pod, None)
        return self._replace(self._records.pop(pod, None), None, now)

    def is_served(self, job_type: str) -> bool:
        """Return whether a worker may know the type, or none is there to know it."""
        return self._may_handle(job_type) or not self.workers

    def unserved_type(self, job_type: str, now: float) -> UnservedType | None:
        """Return since when the type is missing, or None if it is not, or nobody can tell."""
        if not self._has_live_worker(now) or self._may_handle(job_type):
            return None
        lost_at = self._type_lost_at.get(job_type, NEVER)
        live = [self._records[pod] for pod, until in self._live_until.items() if until >= now]
        listed = frozenset[str]().union(*(entry.types or () for entry in live))
        since = max(self._live_since, lost_at, self._uncertain_until)
        return UnservedType(since, len(live), tuple(sorted(listed)))

    def _has_live_worker(self, now: float) -> bool:
        return any(until >= now for until in self._live_until.values())

    def _may_handle(self, job_type: str) -> bool:
        return self._undeclared > 0 or self._type_counts[job_type] > 0

    def _replace(
        self, previous: WorkerRecord | None, current: WorkerRecord | None, now: float
    ) -> AffectedTypes:
        """Count one worker anew, and note what was listed up to now and no longer is."""
        if previous and current and previous.same_capacity(current):
            return NO_TYPES
        anybody = self.workers > 0
        self._count(current, 1)
        self._count(previous, -1)
        concerned = self._types_lost(previous, now) | self._types_gained(previous, current)
        return concerned if anybody == (self.workers > 0) else ALL_TYPES

    def _count(self, record: WorkerRecord | None, sign: int) -> None:
        if record is None or not record.worker:
            return
        self.workers += sign * record.accepts_jobs
        self.slots += sign * record.slots * record.accepts_jobs
        if record.types is None:
            self._undeclared += sign
            return
        for job_type in record.types:
            self._type_counts[job_type] += sign
            if not self._type_counts[job_type]:
                del self._type_counts[job_type]

    def _types_gained(
        self, previous: WorkerRecord | None, current: WorkerRecord | None
    ) -> AffectedTypes:
        """Return the types that one worker alone may know, and has not known before."""
        if current is None or not current.worker:
            return NO_TYPES
        if current.types is None:
            return ALL_TYPES
        old = (
            previous.types if previous and previous.worker and previous.types else frozenset[str]()
        )
        new = current.types - old
        return AffectedTypes(frozenset(one for one in new if self._type_counts[one] == 1))

    def _types_lost(self, previous: WorkerRecord | None, now: float) -> AffectedTypes:
        if previous is None or not previous.worker:
            return NO_TYPES
        if previous.types is None:
            self._uncertain_until = now
            return ALL_TYPES
        lost = frozenset(one for one in previous.types if not self._may_handle(one))
        if len(self._type_lost_at) + len(lost) > MAX_REMEMBERED:
            self._type_lost_at.clear()
            self._uncertain_until = now
        self._type_lost_at.update(dict.fromkeys(lost, now))
        return AffectedTypes(lost)


@dataclass(frozen=True, slots=True)
class WorkerLeaseVersion:
    """A worker's Lease in one version; `duration` is what it says itself, in seconds."""

    namespace: str
    name: str
    uid: str
    version: str
    duration: int

    @property
    def pod(self) -> tuple[str, str]:
        """Return namespace and name of the pod it is about."""
        return self.namespace, self.name.removeprefix(WORKER_LEASE_PREFIX)


UnchangedSince = Mapping[WorkerLeaseVersion, float]
"""Leases as they are, and since when: monotonic seconds."""


def read_worker_lease(obj: JsonObject) -> WorkerLeaseVersion:
    """Read a coordination Lease."""
    meta = child(obj, "metadata")
    return WorkerLeaseVersion(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        version=text(meta, "resourceVersion"),
        duration=integer(child(obj, "spec"), "leaseDurationSeconds"),
    )


def track_unchanged(
    previous: UnchangedSince, listed: Iterable[WorkerLeaseVersion], now: float
) -> UnchangedSince:
    """Return since when each Lease there is has been as it is."""
    ours = (lease for lease in listed if lease.name.startswith(WORKER_LEASE_PREFIX))
    return {lease: previous.get(lease, now) for lease in ours}


def stale_leases(
    unchanged_since: UnchangedSince,
    busy_pods: AbstractSet[tuple[str, str]],
    timeout: float,
    now: float,
) -> list[WorkerLeaseVersion]:
    """Return the Leases that are to go; `busy_pods`: pods that hold jobs.

    A job's recovery needs to see who is the newest process of its pod, so jobs go first. A worker
    that announces itself seldom, and says so, is not silent in between.
    """
    return [
        lease
        for lease, since in unchanged_since.items()
        if now - since >= max(timeout, lease.duration) and lease.pod not in busy_pods
    ]
