"""The cache of jobs and its indexes: views of open jobs, small records of the others.

Indexed by name, parent, dependency, deduplication id, pod, queue and type. Fed by the watch, by
lists and by the answers to writes, in any order: an older version never replaces a newer one.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from asyncjob.lifecycle.deduplication import is_live
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob_operator.core.admission.reservations import is_active
from asyncjob_operator.core.dependencies import DependencyKey, awaited_children, dependency_key
from asyncjob_operator.core.policies.deduplication import DuplicateGroup
from asyncjob_operator.core.retention import FinishedJob, finished_job

K = TypeVar("K")

KnownJob = JobView | FinishedJob
QueueKey = tuple[str, str]
"""Namespace and name."""

ParentKey = tuple[str, str]
"""Namespace and UID: a child may name any UID as its parent's, so only its own namespace counts."""

DedupKey = tuple[str, str]
"""Namespace and deduplication id."""

FAILED_PHASES: Final = FINISHED_PHASES - {Phase.SUCCEEDED}
MAX_REMEMBERED_DELETED: Final = 10_000
"""Deleted jobs that are remembered, so that an answer that is seconds late brings none back."""


@dataclass(frozen=True, slots=True)
class JobAddress:
    """Namespace, name and known version of a job."""

    namespace: str
    name: str
    version: str


class JobStore:
    """Jobs by UID: views of open jobs, records of the others.

    A job is open until it has finished, and while a redrive or rerun of it is requested.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, Phase]] = Counter()
        self.relations = RelationIndex()
        self._jobs: dict[str, JobView] = {}
        self._finished: dict[str, FinishedJob] = {}
        self._requested: dict[str, FinishedJob] = {}
        """Records of finished jobs that are open because a request is pending."""

        self._previous_records: dict[str, FinishedJob] = {}
        """Earlier records of finished jobs whose view is stored again."""

        self._duplicates: dict[DedupKey, DuplicateGroup] = {}
        self._finished_duplicates: UidIndex[DedupKey] = UidIndex()
        self._by_pod: UidIndex[tuple[str, str]] = UidIndex()
        self._by_type: UidIndex[tuple[str, str, str]] = UidIndex()
        self._types_in_queue: dict[QueueKey, dict[str, None]] = {}
        self._active: UidIndex[QueueKey] = UidIndex()
        self._deleted: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._jobs) + len(self._finished)

    def __contains__(self, uid: str) -> bool:
        return uid in self._jobs or uid in self._finished

    def get(self, uid: str) -> JobView | None:
        """Return the view of an open job, None if there is none."""
        return self._jobs.get(uid)

    def uids(self) -> list[str]:
        """Return the UIDs of the open jobs."""
        return list(self._jobs)

    def finished(self) -> list[FinishedJob]:
        """Return the records of finished jobs, including those with a pending request."""
        return [*self._finished.values(), *self._requested.values()]

    def locate(self, uid: str) -> JobAddress | None:
        """Return namespace, name and known version of a job, None if it is unknown."""
        known = self.find(uid)
        return _address(known) if known else None

    def addresses(self) -> Iterator[tuple[str, JobAddress]]:
        """Yield UID and address of all jobs, as they are now."""
        for uid in [*self._jobs, *self._finished]:
            known = self.find(uid)
            if known:
                yield uid, _address(known)

    def by_phase(self) -> Counter[Phase]:
        """Return how many jobs are in each phase."""
        phases: Counter[Phase] = Counter()
        for (_, _, phase), count in self.counts.items():
            phases[phase] += count
        return phases

    def is_new_version(self, uid: str, version: str) -> bool:
        """Return whether the version is newer than the known one; never for a deleted job.

        A late answer must not bring a deleted job back.
        """
        known = self.find(uid)
        if known is None:
            return uid not in self._deleted
        return is_newer(version, known.resource_version)

    def put(self, job: JobView) -> None:
        """Store the view of a job."""
        record = self._record(job.uid)
        self.remove(job.uid)
        if record and job.finished:
            self._previous_records[job.uid] = record
        self._jobs[job.uid] = job
        self.relations.add(job)
        self.counts[job.namespace, job.queue, job.phase] += 1
        queue = (job.namespace, job.queue)
        self._by_type.add((*queue, job.type), job.uid)
        self._types_in_queue.setdefault(queue, {})[job.type] = None
        if is_active(job):
            self._active.add(queue, job.uid)
        if job.gates.deduplication_id:
            self._index_duplicate(job)
        if job.lease:
            self._by_pod.add((job.namespace, job.lease.holder_uid), job.uid)

    def compact_finished(self, job: JobView, observed_at: float) -> None:
        """Keep of a finished job, written by this wall-clock time, only what retention needs."""
        # Before anything is removed: if this raises, the store stays as it was.
        record = finished_job(job, observed_at, self._record(job.uid))
        self.remove(job.uid)
        self._finished[job.uid] = record
        self.relations.add(record)
        self.counts[job.namespace, job.queue, job.phase] += 1

    def track_pending_request(self, job: JobView, observed_at: float) -> None:
        """Keep a record for retention beside the view of a finished job with a pending request."""
        record = finished_job(job, observed_at, self._record(job.uid))
        self._requested[job.uid] = replace(record, awaits_request=True)

    def _record(self, uid: str) -> FinishedJob | None:
        records = (self._finished, self._requested, self._previous_records)
        return next((found[uid] for found in records if uid in found), None)

    def remove(self, uid: str) -> None:
        """Forget a job."""
        self._previous_records.pop(uid, None)
        self._requested.pop(uid, None)
        job = self._jobs.pop(uid, None)
        if job:
            self._unindex(job)
        known = job or self._finished.pop(uid, None)
        if known:
            self.relations.discard(known)
            self._uncount((known.namespace, known.queue, known.phase))

    def delete(self, uid: str) -> None:
        """Remove a deleted job for good."""
        self.remove(uid)
        self._deleted[uid] = None
        if len(self._deleted) > MAX_REMEMBERED_DELETED:
            del self._deleted[next(iter(self._deleted))]

    def is_deleted(self, uid: str) -> bool:
        """Return whether the job is remembered as deleted: none comes back."""
        return uid in self._deleted

    def live_duplicate(self, job: JobView) -> JobView | None:
        """Return the first of the other live jobs with the same deduplication id, or None."""
        group = self._duplicates.get(_dedup_key(job)) if job.gates.deduplication_id else None
        uid = group.first_other(job.uid) if group else None
        return self._jobs[uid] if uid is not None else None

    def first_duplicates(self, job: JobView) -> tuple[str, ...]:
        """Return the UIDs of the first two live jobs with the job's deduplication id."""
        group = self._duplicates.get(_dedup_key(job)) if job.gates.deduplication_id else None
        return group.first_two() if group else ()

    def finished_duplicates(self, job: JobView) -> list[str]:
        """Return the finished, open jobs with the job's deduplication id."""
        return (
            self._finished_duplicates.members(_dedup_key(job)) if job.gates.deduplication_id else []
        )

    def of_type(self, queue: QueueKey, job_type: str) -> list[str]:
        """Return the UIDs of a queue's open jobs of one type."""
        return self._by_type.members((*queue, job_type))

    def in_queue(self, queue: QueueKey) -> list[str]:
        """Return the UIDs of a queue's open jobs."""
        types = self._types_in_queue.get(queue, ())
        return [uid for job_type in types for uid in self.of_type(queue, job_type)]

    def active_in_queue(self, queue: QueueKey) -> list[str]:
        """Return the UIDs of a queue's jobs that run, or may be claimed at any moment."""
        return self._active.members(queue)

    def busy_pods(self) -> set[tuple[str, str]]:
        """Return namespace and name of each pod that holds a job's lease."""
        jobs = self._jobs.values()
        return {(job.namespace, job.lease.holder) for job in jobs if job.lease}

    def held_by(self, namespace: str, pod_uid: str) -> list[str]:
        """Return the UIDs of the jobs whose lease a pod holds."""
        return self._by_pod.members((namespace, pod_uid))

    def find(self, uid: str) -> JobView | FinishedJob | None:
        """Return what is known of a job, open or finished, None if it is unknown."""
        return self._jobs.get(uid) or self._finished.get(uid)

    def _unindex(self, job: JobView) -> None:
        queue = (job.namespace, job.queue)
        self._by_type.discard((*queue, job.type), job.uid)
        if not self._by_type.size((*queue, job.type)):
            del self._types_in_queue[queue][job.type]
            if not self._types_in_queue[queue]:
                del self._types_in_queue[queue]
        self._active.discard(queue, job.uid)
        if job.gates.deduplication_id:
            self._unindex_duplicate(job)
        if job.lease:
            self._by_pod.discard((job.namespace, job.lease.holder_uid), job.uid)

    def _index_duplicate(self, job: JobView) -> None:
        if is_live(job):
            self._duplicates.setdefault(_dedup_key(job), DuplicateGroup()).add(job)
        elif job.finished:
            self._finished_duplicates.add(_dedup_key(job), job.uid)

    def _unindex_duplicate(self, job: JobView) -> None:
        self._finished_duplicates.discard(_dedup_key(job), job.uid)
        group = self._duplicates.get(_dedup_key(job))
        if group:
            group.discard(job)
            if not group:
                del self._duplicates[_dedup_key(job)]

    def _uncount(self, label: tuple[str, str, Phase]) -> None:
        self.counts[label] -= 1
        if not self.counts[label]:
            del self.counts[label]


class UidIndex(Generic[K]):
    """Groups of UIDs by key, each in the order in which its members were added."""

    def __init__(self) -> None:
        self._groups: dict[K, dict[str, None]] = {}

    def add(self, key: K, uid: str) -> None:
        """Add the UID to a group."""
        self._groups.setdefault(key, {})[uid] = None

    def discard(self, key: K, uid: str) -> None:
        """Remove the UID from a group, if it is there."""
        if group := self._groups.get(key):  # none is kept empty
            group.pop(uid, None)
            if not group:
                del self._groups[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._groups)

    def members(self, key: K) -> list[str]:
        """Return the UIDs of a group."""
        return list(self._groups.get(key, ()))

    def first(self, key: K) -> str | None:
        """Return the UID that was added first of those in the group, None if it is empty."""
        return next(iter(self._groups.get(key, ())), None)

    def size(self, key: K) -> int:
        """Return how many are in a group."""
        return len(self._groups.get(key, ()))


@dataclass(frozen=True, slots=True)
class ChildrenStatus:
    """The state of a job's children: whether any is open, and the UID of one that failed."""

    any_open: bool = False
    failed_uid: str | None = None


class RelationIndex:
    """Indexes UIDs of jobs by name, dependency and parent; a job without ties costs one entry."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, str]] = {}
        self._dependents: UidIndex[DependencyKey] = UidIndex()
        self._children: UidIndex[ParentKey] = UidIndex()
        self._open_children: UidIndex[ParentKey] = UidIndex()
        self._failed_children: UidIndex[ParentKey] = UidIndex()
        self.awaiting: UidIndex[str] = UidIndex()
        """Parked jobs by the UID of a child whose end they wait for."""

    def add(self, job: KnownJob) -> None:
        """Index a job."""
        self._by_name.setdefault(job.namespace, {})[job.name] = job.uid
        if job.parent_uid:
            for index in self._child_indexes(job):
                index.add((job.namespace, job.parent_uid), job.uid)
        if isinstance(job, JobView) and (job.waiting or job.gates.depends_on):
            self._add_waits(job)

    def discard(self, job: KnownJob) -> None:
        """Remove a job from the indexes; another job of its name stays."""
        names = self._by_name.get(job.namespace, {})
        if names.get(job.name) == job.uid:
            del names[job.name]
            if not names:
                del self._by_name[job.namespace]
        if job.parent_uid:
            for index in self._child_indexes(job):
                index.discard((job.namespace, job.parent_uid), job.uid)
        if isinstance(job, JobView) and (job.waiting or job.gates.depends_on):
            self._discard_waits(job)

    def _add_waits(self, job: JobView) -> None:
        if has_pending_dependencies(job):
            for dependency in job.gates.depends_on:
                self._dependents.add(dependency_key(job.namespace, dependency), job.uid)
        for child in awaited_children(job):
            self.awaiting.add(child.uid, job.uid)

    def _discard_waits(self, job: JobView) -> None:
        if has_pending_dependencies(job):
            for dependency in job.gates.depends_on:
                self._dependents.discard(dependency_key(job.namespace, dependency), job.uid)
        for child in awaited_children(job):
            self.awaiting.discard(child.uid, job.uid)

    def uid_of(self, namespace: str, name: str) -> str | None:
        """Return the UID of the job of this name."""
        return self._by_name.get(namespace, {}).get(name)

    def dependents(self, key: DependencyKey) -> list[str]:
        """Return the jobs that have not started yet and depend on this."""
        return self._dependents.members(key)

    def has_dependents(self, key: DependencyKey) -> bool:
        """Return whether any job that has not started yet depends on this."""
        return self._dependents.size(key) > 0

    def dependents_on(self, kind: str) -> list[str]:
        """Return the jobs that have not started yet and depend on something of this kind."""
        found = [self._dependents.members(key) for key in self._dependents if key[1] == kind]
        return list(dict.fromkeys(uid for uids in found for uid in uids))

    def children(self, parent: ParentKey) -> list[str]:
        """Return the children of a job."""
        return self._children.members(parent)

    def has_children(self, parent: ParentKey) -> bool:
        """Return whether the job has any child."""
        return self._children.size(parent) > 0

    def children_status(self, parent: ParentKey) -> ChildrenStatus:
        """Return whether any child of the job is open, and one that failed."""
        return ChildrenStatus(
            self._open_children.size(parent) > 0, self._failed_children.first(parent)
        )

    def _child_indexes(self, job: KnownJob) -> Iterator[UidIndex[ParentKey]]:
        """Yield the indexes that a child belongs to."""
        yield self._children
        if job.phase not in FINISHED_PHASES:
            yield self._open_children
        if job.phase in FAILED_PHASES:
            yield self._failed_children


def has_pending_dependencies(job: JobView) -> bool:
    """Return whether the job's dependencies still matter: it has not started yet."""
    return bool(job.gates.depends_on) and not job.attempt and not job.finished


def is_newer(version: str, than: str) -> bool:
    """Return whether one resourceVersion is newer or, where they are not numbers, different."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than


def _address(known: JobView | FinishedJob) -> JobAddress:
    return JobAddress(known.namespace, known.name, known.resource_version)


def _dedup_key(job: JobView) -> DedupKey:
    return (job.namespace, job.gates.deduplication_id or "")
