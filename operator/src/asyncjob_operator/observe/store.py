"""The lean cache of jobs: views of those something may happen to, records of the others.

Fed by the watch, by lists and by the answers to writes, in any order: an older version never
replaces a newer one.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.admission.book import occupies
from asyncjob_operator.core.duplicates import Contenders, is_live
from asyncjob_operator.core.retention import Finished, finished_of
from asyncjob_operator.observe.index import Index
from asyncjob_operator.observe.relations import Relations

Queue = tuple[str, str]
"""Namespace and name."""

Key = tuple[str, str]
"""Namespace and deduplication id."""

REMEMBERED: Final = 10_000
"""So many deleted jobs are told from new ones: answers are late by seconds."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a job is."""

    namespace: str
    name: str
    version: str


class JobStore:
    """Jobs by UID."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, Phase]] = Counter()
        self.relations = Relations()
        self._jobs: dict[str, JobView] = {}
        self._finished: dict[str, Finished] = {}
        self._ended: dict[str, Finished] = {}
        """What was kept of finished jobs that are looked at again."""

        self._contenders: dict[Key, Contenders] = {}
        self._closed: Index[Key] = Index()
        self._by_pod: Index[tuple[str, str]] = Index()
        self._by_type: Index[tuple[str, str, str]] = Index()
        self._types: dict[Queue, dict[str, None]] = {}
        self._occupying: Index[Queue] = Index()
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._jobs) + len(self._finished)

    def __contains__(self, uid: str) -> bool:
        return uid in self._jobs or uid in self._finished

    def get(self, uid: str) -> JobView | None:
        """Return the view of a job that something may still happen to."""
        return self._jobs.get(uid)

    def uids(self) -> list[str]:
        """Return the UIDs of the jobs that something may still happen to."""
        return list(self._jobs)

    def finished(self) -> list[Finished]:
        """Return the records of finished jobs."""
        return list(self._finished.values())

    def address(self, uid: str) -> Address | None:
        """Return where a job is and which version of it is known."""
        known = self.known(uid)
        return _address(known) if known else None

    def addresses(self) -> Iterator[tuple[str, Address]]:
        """Yield UID and address of all jobs, as they are now."""
        for uid in [*self._jobs, *self._finished]:
            known = self.known(uid)
            if known:
                yield uid, _address(known)

    def by_phase(self) -> Counter[Phase]:
        """Return how many jobs are in each phase."""
        phases: Counter[Phase] = Counter()
        for (_, _, phase), count in self.counts.items():
            phases[phase] += count
        return phases

    def is_news(self, uid: str, version: str) -> bool:
        """Return whether the version is newer than what is known of the job.

        Of one that was deleted nothing is: a late answer must not bring it back.
        """
        known = self.known(uid)
        if known is None:
            return uid not in self._gone
        return is_newer(version, known.resource_version)

    def put(self, job: JobView) -> None:
        """Keep the whole view."""
        ended = self._finished.get(job.uid) or self._ended.get(job.uid)
        self.remove(job.uid)
        if ended and job.finished:
            self._ended[job.uid] = ended
        self._jobs[job.uid] = job
        self.relations.add(job)
        self.counts[job.namespace, job.queue, job.phase] += 1
        queue = (job.namespace, job.queue)
        self._by_type.add((*queue, job.type), job.uid)
        self._types.setdefault(queue, {})[job.type] = None
        if occupies(job):
            self._occupying.add(queue, job.uid)
        if job.gates.deduplication_id:
            self._contend(job)
        if job.lease:
            self._by_pod.add((job.namespace, job.lease.holder_uid), job.uid)

    def retire(self, job: JobView, seen_at: float) -> None:
        """Keep only what retention needs of a finished job, seen at this time of the wall clock."""
        before = self._finished.get(job.uid) or self._ended.get(job.uid)
        record = finished_of(job, seen_at, before)  # may fail, and then all is to stay as it was
        self.remove(job.uid)
        self._finished[job.uid] = record
        self.relations.add(record)
        self.counts[job.namespace, job.queue, job.phase] += 1

    def remove(self, uid: str) -> None:
        """Forget a job."""
        self._ended.pop(uid, None)
        job = self._jobs.pop(uid, None)
        if job:
            self._unlist(job)
        gone = job or self._finished.pop(uid, None)
        if gone:
            self.relations.discard(gone)
            self._uncount((gone.namespace, gone.queue, gone.phase))

    def delete(self, uid: str) -> None:
        """Take that there is no such job any more, and never will be."""
        self.remove(uid)
        self._gone[uid] = None
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def rival(self, job: JobView) -> JobView | None:
        """Return the first of the other live jobs with the same deduplication id, or None."""
        contenders = self._contenders.get(_key(job)) if job.gates.deduplication_id else None
        uid = contenders.rival_of(job.uid) if contenders else None
        return self._jobs[uid] if uid is not None else None

    def contenders(self, job: JobView) -> tuple[str, ...]:
        """Return the UIDs of the first two live jobs with its deduplication id."""
        contenders = self._contenders.get(_key(job)) if job.gates.deduplication_id else None
        return contenders.first_two() if contenders else ()

    def closed_with(self, job: JobView) -> list[str]:
        """Return the finished jobs with its deduplication id of which somebody wants more."""
        return self._closed.members(_key(job)) if job.gates.deduplication_id else []

    def of_type(self, queue: Queue, job_type: str) -> list[str]:
        """Return the UIDs of a queue's jobs of one type that something may still happen to."""
        return self._by_type.members((*queue, job_type))

    def in_queue(self, queue: Queue) -> list[str]:
        """Return the UIDs of a queue's jobs that something may still happen to."""
        return [uid for one in self._types.get(queue, ()) for uid in self.of_type(queue, one)]

    def occupying(self, queue: Queue) -> list[str]:
        """Return the UIDs of a queue's jobs that run, or may be claimed any moment."""
        return self._occupying.members(queue)

    def holders(self) -> set[tuple[str, str]]:
        """Return namespace and name of each pod that holds a job's lease."""
        jobs = self._jobs.values()
        return {(job.namespace, job.lease.holder) for job in jobs if job.lease}

    def held_by(self, namespace: str, pod_uid: str) -> list[str]:
        """Return the UIDs of the jobs whose lease a pod holds."""
        return self._by_pod.members((namespace, pod_uid))

    def known(self, uid: str) -> JobView | Finished | None:
        """Return all that is known of a job, open or finished."""
        return self._jobs.get(uid) or self._finished.get(uid)

    def _unlist(self, job: JobView) -> None:
        queue = (job.namespace, job.queue)
        self._by_type.discard((*queue, job.type), job.uid)
        if not self._by_type.size((*queue, job.type)):
            del self._types[queue][job.type]
            if not self._types[queue]:
                del self._types[queue]
        self._occupying.discard(queue, job.uid)
        if job.gates.deduplication_id:
            self._yield(job)
        if job.lease:
            self._by_pod.discard((job.namespace, job.lease.holder_uid), job.uid)

    def _contend(self, job: JobView) -> None:
        if is_live(job):
            self._contenders.setdefault(_key(job), Contenders()).add(job)
        elif job.finished:
            self._closed.add(_key(job), job.uid)

    def _yield(self, job: JobView) -> None:
        self._closed.discard(_key(job), job.uid)
        contenders = self._contenders.get(_key(job))
        if contenders:
            contenders.discard(job)
            if not contenders:
                del self._contenders[_key(job)]

    def _uncount(self, label: tuple[str, str, Phase]) -> None:
        self.counts[label] -= 1
        if not self.counts[label]:
            del self.counts[label]


def is_newer(version: str, than: str) -> bool:
    """Return whether one resourceVersion is newer or, where they are no numbers, another."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than


def _address(known: JobView | Finished) -> Address:
    return Address(known.namespace, known.name, known.resource_version)


def _key(job: JobView) -> Key:
    return (job.namespace, job.gates.deduplication_id or "")
