"""Workers as their Leases describe them: handler types, slots, and which Leases are stale.

A type counts as unserved only while the queue has a live worker: one that renewed its Lease while
this replica watched, and that still accepts jobs. It counts as served if any Lease that names a
process lists it, those of draining and silent workers included. All times are read from this
replica's own monotonic clock, so that no wall clock matters.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob.worker_lease import WorkerLeaseView, pod_of_lease

NEVER: Final = float("-inf")
MAX_REMEMBERED: Final = 10_000
"""Types of a queue whose loss is remembered; beyond that all are forgotten."""

MAX_SLOTS: Final = 100_000
"""Slots that a worker is believed to have: its Lease may claim any number."""


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """The content of a worker's Lease."""

    worker: str
    """Identity of the process; empty once it has withdrawn."""

    renew_time: str
    duration: int
    """Seconds that the Lease lasts without a renewal."""

    types: frozenset[str] | None
    """Types that the worker lists, None if it does not say."""

    draining: bool = False
    slots: int = 0

    @property
    def accepts_jobs(self) -> bool:
        """Return whether the worker still accepts jobs."""
        return bool(self.worker) and not self.draining

    def same_capacity(self, other: "WorkerRecord") -> bool:
        """Return whether both have the same types and slots, apart from renewals."""
        own = (bool(self.worker), self.types, self.draining, self.slots)
        return own == (bool(other.worker), other.types, other.draining, other.slots)

    def may_handle(self, job_type: str) -> bool:
        """Return whether the worker lists the type, or does not say what it lists."""
        return bool(self.worker) and (self.types is None or job_type in self.types)


@dataclass(frozen=True, slots=True)
class UnservedType:
    """A type that no worker of a queue lists, though it has live ones; `since` is monotonic."""

    since: float
    live_workers: int
    listed_types: tuple[str, ...]


def worker_record(lease: WorkerLeaseView) -> WorkerRecord:
    """Return what counts of a worker's Lease for its queue."""
    return WorkerRecord(
        worker=lease.worker,
        renew_time=lease.renew_time,
        duration=lease.duration_seconds or 0,
        types=None if lease.types is None else frozenset(lease.types),
        draining=lease.draining,
        slots=min(max(lease.slots, 0), MAX_SLOTS),
    )


@dataclass(frozen=True, slots=True)
class AffectedTypes:
    """The types whose jobs have to be evaluated again because their workers have changed."""

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

    What each job asks for is counted when workers change, so that asking costs nothing.
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
        """How many workers accept jobs."""

        self.slots = 0
        """How many jobs these run at the same time."""

    def __bool__(self) -> bool:
        return bool(self._records)

    def update(self, pod: str, record: WorkerRecord, now: float) -> AffectedTypes:
        """Store a worker's record and return the types whose jobs that affects."""
        previous, had_live_worker = self._records.get(pod), self._has_live_worker(now)
        self._records[pod] = record
        if not record.accepts_jobs:
            self._live_until.pop(pod, None)
        elif previous and (previous.worker, previous.renew_time) != (
            record.worker,
            record.renew_time,
        ):
            self._live_until[pod] = now + record.duration
        affected = self._replace(previous, record, now)
        if not had_live_worker and self._has_live_worker(now):
            self._live_since = now
            return ALL_TYPES
        return affected

    def remove(self, pod: str, now: float) -> AffectedTypes:
        """Forget a worker whose Lease was deleted and return the types whose jobs that affects."""
        self._live_until.pop(pod, None)
        return self._replace(self._records.pop(pod, None), None, now)

    def is_served(self, job_type: str) -> bool:
        """Return whether a worker may handle the type, or the queue has no workers."""
        return self._may_handle(job_type) or not self.workers

    def unserved_type(self, job_type: str, now: float) -> UnservedType | None:
        """Return since when the type has been unserved, None if it is served or unknown."""
        if not self._has_live_worker(now) or self._may_handle(job_type):
            return None
        lost_at = self._type_lost_at.get(job_type, NEVER)
        live = [self._records[pod] for pod, until in self._live_until.items() if until >= now]
        listed = frozenset[str]().union(*(record.types or () for record in live))
        since = max(self._live_since, lost_at, self._uncertain_until)
        return UnservedType(since, len(live), tuple(sorted(listed)))

    def _has_live_worker(self, now: float) -> bool:
        return any(until >= now for until in self._live_until.values())

    def _may_handle(self, job_type: str) -> bool:
        return self._undeclared > 0 or self._type_counts[job_type] > 0

    def _replace(
        self, previous: WorkerRecord | None, current: WorkerRecord | None, now: float
    ) -> AffectedTypes:
        """Update the counts for one worker, and note the types that are no longer listed."""
        if previous and current and previous.same_capacity(current):
            return NO_TYPES
        had_workers = self.workers > 0
        self._count(current, 1)
        self._count(previous, -1)
        affected = self._types_lost(previous, now) | self._types_gained(previous, current)
        return affected if had_workers == (self.workers > 0) else ALL_TYPES

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
        """Return the types that this worker has begun to list, and is the only one to."""
        if current is None or not current.worker:
            return NO_TYPES
        if current.types is None:
            return ALL_TYPES
        old = (
            previous.types if previous and previous.worker and previous.types else frozenset[str]()
        )
        new = current.types - old
        return AffectedTypes(
            frozenset(job_type for job_type in new if self._type_counts[job_type] == 1)
        )

    def _types_lost(self, previous: WorkerRecord | None, now: float) -> AffectedTypes:
        if previous is None or not previous.worker:
            return NO_TYPES
        if previous.types is None:
            self._uncertain_until = now
            return ALL_TYPES
        lost = frozenset(job_type for job_type in previous.types if not self._may_handle(job_type))
        if len(self._type_lost_at) + len(lost) > MAX_REMEMBERED:
            self._type_lost_at.clear()
            self._uncertain_until = now
        self._type_lost_at.update(dict.fromkeys(lost, now))
        return AffectedTypes(lost)


@dataclass(frozen=True, slots=True)
class WorkerLeaseVersion:
    """A worker's Lease in one version; `duration` is its leaseDurationSeconds."""

    namespace: str
    name: str
    uid: str
    version: str
    duration: int

    @property
    def pod(self) -> tuple[str, str]:
        """Return namespace and name of the worker's pod."""
        return self.namespace, pod_of_lease(self.name)


UnchangedSince = Mapping[WorkerLeaseVersion, float]
"""Leases in their current version, and since when they have had it, in monotonic seconds."""


def lease_version(lease: WorkerLeaseView) -> WorkerLeaseVersion:
    """Return what identifies this version of a Lease."""
    return WorkerLeaseVersion(
        namespace=lease.namespace,
        name=lease.name,
        uid=lease.uid,
        version=lease.resource_version,
        duration=lease.duration_seconds or 0,
    )


def track_unchanged(
    previous: UnchangedSince, listed: Iterable[WorkerLeaseVersion], now: float
) -> UnchangedSince:
    """Return since when each listed worker Lease has had its version."""
    worker_leases = (lease for lease in listed if lease.name.startswith(WORKER_LEASE_PREFIX))
    return {lease: previous.get(lease, now) for lease in worker_leases}


def stale_leases(
    unchanged_since: UnchangedSince,
    busy_pods: AbstractSet[tuple[str, str]],
    timeout: float,
    now: float,
) -> list[WorkerLeaseVersion]:
    """Return the Leases to delete; `busy_pods` are the pods that hold jobs.

    Recovery of a job needs to know the newest process of its pod, so the Lease stays as long as the
    pod holds jobs. A worker whose own Lease lasts longer than `timeout` has that much time.
    """
    return [
        lease
        for lease, since in unchanged_since.items()
        if now - since >= max(timeout, lease.duration) and lease.pod not in busy_pods
    ]
