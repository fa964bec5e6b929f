"""Who is called what, who is whose child, and who waits for whom: the store's view of ties.

Everything is looked up by name or UID, whether a job is open or finished; a job without
dependencies, children and parent costs the entry of its name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import FINISHED, Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.retention import Finished
from asyncjob_operator.observe.index import Index

Kept = JobView | Finished
Name = tuple[str, str]
"""Namespace and name."""

Parent = tuple[str, str]
"""Namespace and UID. A child names its parent's UID as it likes: only its own namespace counts."""

FAILED: Final = FINISHED - {Phase.SUCCEEDED}


@dataclass(frozen=True, slots=True)
class Family:
    """What those who wait for all children of a job need to know of these."""

    open: bool = False
    failed: str | None = None


class Relations:
    """UIDs; what they stand for is the store's business."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, str]] = {}
        self._waiting: Index[Name] = Index()
        self._children: Index[Parent] = Index()
        self._open: Index[Parent] = Index()
        self._failed: Index[Parent] = Index()

    def add(self, job: Kept) -> None:
        """Take a job in."""
        self._by_name.setdefault(job.namespace, {})[job.name] = job.uid
        if job.parent:
            for group in self._groups(job):
                group.add((job.namespace, job.parent), job.uid)
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
            for group in self._groups(job):
                group.discard((job.namespace, job.parent), job.uid)
        if isinstance(job, JobView) and waits(job):
            for one in job.gates.depends_on:
                self._waiting.discard((job.namespace, one.name), job.uid)

    def uid(self, namespace: str, name: str) -> str | None:
        """Return the UID of the job of a name."""
        return self._by_name.get(namespace, {}).get(name)

    def waiting_for(self, namespace: str, name: str) -> list[str]:
        """Return the jobs that have not started yet and depend on the job of a name."""
        return self._waiting.members((namespace, name))

    def is_waited_for(self, namespace: str, name: str) -> bool:
        """Return whether any job that has not started yet depends on the job of a name."""
        return self._waiting.size((namespace, name)) > 0

    def children(self, parent: Parent) -> list[str]:
        """Return the children of a job."""
        return self._children.members(parent)

    def has_children(self, parent: Parent) -> bool:
        """Return whether the job has any child."""
        return self._children.size(parent) > 0

    def family(self, parent: Parent) -> Family:
        """Return whether a child of the job has not finished, and one that finished badly."""
        return Family(self._open.size(parent) > 0, self._failed.first(parent))

    def _groups(self, job: Kept) -> Iterator[Index[Parent]]:
        """Yield the groups that a child is in."""
        yield self._children
        if job.phase not in FINISHED:
            yield self._open
        if job.phase in FAILED:
            yield self._failed


def waits(job: JobView) -> bool:
    """Return whether what the job depends on still matters to it."""
    return bool(job.gates.depends_on) and not job.attempt and not job.finished
