"""Who is called what, who is whose child, and who waits for whom: the store's view of ties.

Everything is looked up by name or UID, whether a job is open or finished; a job without
dependencies, children and parent costs the entry of its name.
"""

from collections import Counter

from asyncjob.lifecycle.phases import FINISHED, Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.retention import Finished
from asyncjob_operator.observe.index import Index

Kept = JobView | Finished
Name = tuple[str, str]
"""Namespace and name."""


class Relations:
    """UIDs; what they stand for is the store's business."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, str]] = {}
        self._waiting: Index[Name] = Index()
        self._children: Index[str] = Index()
        self._phases: dict[str, Counter[Phase]] = {}

    def add(self, job: Kept) -> None:
        """Take a job in."""
        self._by_name.setdefault(job.namespace, {})[job.name] = job.uid
        if job.parent:
            self._children.add(job.parent, job.uid)
            self._phases.setdefault(job.parent, Counter())[job.phase] += 1
        if isinstance(job, JobView) and waits(job):
            for one in job.gates.depends_on:
                self._waiting.add((job.namespace, one.name), job.uid)

    def discard(self, job: Kept) -> None:
        """Take a job out; another of its name stays."""
        names = self._by_name.get(job.namespace, {})
        if names.get(job.name) == job.uid:
            del names[job.name]
            if not names:
                del self._by_name[job.namespace]
        if job.parent:
            self._discard_child(job)
        if isinstance(job, JobView) and waits(job):
            for one in job.gates.depends_on:
                self._waiting.discard((job.namespace, one.name), job.uid)

    def uid(self, namespace: str, name: str) -> str | None:
        """Return the UID of the job of a name."""
        return self._by_name.get(namespace, {}).get(name)

    def waiting_for(self, namespace: str, name: str) -> list[str]:
        """Return the jobs that have not started yet and depend on the job of a name."""
        return self._waiting.members((namespace, name))

    def children(self, uid: str) -> list[str]:
        """Return the children of a job."""
        return self._children.members(uid)

    def has_open_children(self, uid: str) -> bool:
        """Return whether a child of the job has not finished."""
        return any(count and phase not in FINISHED for phase, count in self._count(uid))

    def has_failed_children(self, uid: str) -> bool:
        """Return whether a child of the job has finished without success."""
        failed = FINISHED - {Phase.SUCCEEDED}
        return any(count and phase in failed for phase, count in self._count(uid))

    def _count(self, uid: str) -> list[tuple[Phase, int]]:
        return list(self._phases.get(uid, Counter[Phase]()).items())

    def _discard_child(self, job: Kept) -> None:
        self._children.discard(job.parent, job.uid)
        count = self._phases[job.parent]
        count[job.phase] -= 1
        if not count.total():
            del self._phases[job.parent]


def waits(job: JobView) -> bool:
    """Return whether what the job depends on still matters to it."""
    return bool(job.gates.depends_on) and not job.attempt and not job.finished
