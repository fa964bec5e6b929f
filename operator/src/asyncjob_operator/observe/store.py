"""The lean cache of jobs: views of those something may happen to, records of the others.

Fed by the watch, by lists and by the answers to writes, in any order: an older version never
replaces a newer one.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.retention import Finished, finished_of
from asyncjob_operator.observe.index import Index
from asyncjob_operator.observe.relations import Relations


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
        self._by_key: Index[tuple[str, str]] = Index()
        self._by_pod: Index[str] = Index()

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
        """Return whether the version is newer than what is known of the job."""
        known = self.known(uid)
        return known is None or is_newer(version, known.resource_version)

    def put(self, job: JobView) -> None:
        """Keep the whole view."""
        self.remove(job.uid)
        self._jobs[job.uid] = job
        self.relations.add(job)
        self.counts[job.namespace, job.queue, job.phase] += 1
        if job.gates.deduplication_id:
            self._by_key.add(_key(job), job.uid)
        if job.lease:
            self._by_pod.add(job.lease.holder_uid, job.uid)

    def retire(self, job: JobView) -> None:
        """Keep only what retention needs of a finished job."""
        record = finished_of(job)  # may fail, and then all is to stay as it was
        self.remove(job.uid)
        self._finished[job.uid] = record
        self.relations.add(record)
        self.counts[job.namespace, job.queue, job.phase] += 1

    def remove(self, uid: str) -> None:
        """Forget a job."""
        job = self._jobs.pop(uid, None)
        if job:
            if job.gates.deduplication_id:
                self._by_key.discard(_key(job), uid)
            if job.lease:
                self._by_pod.discard(job.lease.holder_uid, uid)
        gone = job or self._finished.pop(uid, None)
        if gone:
            self.relations.discard(gone)
            self._uncount((gone.namespace, gone.queue, gone.phase))

    def others(self, job: JobView) -> tuple[JobView, ...]:
        """Return the other jobs with the same deduplication id."""
        if not job.gates.deduplication_id:
            return ()
        same = self._by_key.members(_key(job))
        return tuple(self._jobs[uid] for uid in same if uid != job.uid)

    def holders(self) -> set[tuple[str, str]]:
        """Return namespace and name of each pod that holds a job's lease."""
        jobs = self._jobs.values()
        return {(job.namespace, job.lease.holder) for job in jobs if job.lease}

    def held_by(self, pod_uid: str) -> list[str]:
        """Return the UIDs of the jobs whose lease a pod holds."""
        return self._by_pod.members(pod_uid)

    def known(self, uid: str) -> JobView | Finished | None:
        """Return all that is known of a job, open or finished."""
        return self._jobs.get(uid) or self._finished.get(uid)

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


def _key(job: JobView) -> tuple[str, str]:
    return (job.namespace, job.gates.deduplication_id or "")
