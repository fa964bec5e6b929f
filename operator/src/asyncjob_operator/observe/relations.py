"""Who is called what, who is whose child, and who waits for whom: the store's view of ties.

Everything is looked up by name or UID, whether a job is open or finished; a job without
dependencies, children and parent costs the entry of its name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.retention import FinishedJob
from asyncjob_operator.observe.index import UidIndex

KnownJob = JobView | FinishedJob
JobName = tuple[str, str]
"""Namespace and name."""

ParentKey = tuple[str, str]
"""Namespace and UID. A child names its parent's UID as it likes: only its own namespace counts."""

FAILED_PHASES: Final = FINISHED_PHASES - {Phase.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class ChildrenStatus:
    """What those who wait for all children of a job need to know of these."""

    any_open: bool = False
    failed_uid: str | None = None


class RelationIndex:
    """UIDs; what they stand for is the store's business."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, str]] = {}
        self._dependents: UidIndex[JobName] = UidIndex()
        self._children: UidIndex[ParentKey] = UidIndex()
        self._open_children: UidIndex[ParentKey] = UidIndex()
        self._failed_children: UidIndex[ParentKey] = UidIndex()

    def add(self, job: KnownJob) -> None:
        """Take a job in."""
        self._by_name.setdefault(job.namespace, {})[job.name] = job.uid
        if job.parent_uid:
            for group in self._child_indexes(job):
                group.add((job.namespace, job.parent_uid), job.uid)
        if isinstance(job, JobView) and has_pending_dependencies(job):
            for one in job.gates.depends_on:
                self._dependents.add((job.namespace, one.name), job.uid)

    def discard(self, job: KnownJob) -> None:
        """Take a job out; another of its name stays."""
        names = self._by_name.get(job.namespace, {})
        if names.get(job.name) == job.uid:
            del names[job.name]
            if not names:
                del self._by_name[job.namespace]
        if job.parent_uid:
            for group in self._child_indexes(job):
                group.discard((job.namespace, job.parent_uid), job.uid)
        if isinstance(job, JobView) and has_pending_dependencies(job):
            for one in job.gates.depends_on:
                self._dependents.discard((job.namespace, one.name), job.uid)

    def uid_of(self, namespace: str, name: str) -> str | None:
        """Return the UID of the job of a name."""
        return self._by_name.get(namespace, {}).get(name)

    def dependents(self, namespace: str, name: str) -> list[str]:
        """Return the jobs that have not started yet and depend on the job of a name."""
        return self._dependents.members((namespace, name))

    def has_dependents(self, namespace: str, name: str) -> bool:
        """Return whether any job that has not started yet depends on the job of a name."""
        return self._dependents.size((namespace, name)) > 0

    def children(self, parent: ParentKey) -> list[str]:
        """Return the children of a job."""
        return self._children.members(parent)

    def has_children(self, parent: ParentKey) -> bool:
        """Return whether the job has any child."""
        return self._children.size(parent) > 0

    def children_status(self, parent: ParentKey) -> ChildrenStatus:
        """Return whether a child of the job has not finished, and one that finished badly."""
        return ChildrenStatus(
            self._open_children.size(parent) > 0, self._failed_children.first(parent)
        )

    def _child_indexes(self, job: KnownJob) -> Iterator[UidIndex[ParentKey]]:
        """Yield the groups that a child is in."""
        yield self._children
        if job.phase not in FINISHED_PHASES:
            yield self._open_children
        if job.phase in FAILED_PHASES:
            yield self._failed_children


def has_pending_dependencies(job: JobView) -> bool:
    """Return whether what the job depends on still matters to it."""
    return bool(job.gates.depends_on) and not job.attempt and not job.finished
