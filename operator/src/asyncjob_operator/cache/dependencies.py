"""The dependency graph of the cached jobs: what a job depends on, and where there are cycles.

It also names the jobs that have to be evaluated again when a job has changed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from asyncjob.lifecycle.job_view import DependencyView, JobView
from asyncjob.lifecycle.phases import FINAL_PHASES
from asyncjob.names import ARRAY_KIND, JOB_KIND
from asyncjob_operator.cache.child_arrays import ChildArrays
from asyncjob_operator.cache.jobs import ChildrenStatus, JobStore, has_pending_dependencies
from asyncjob_operator.core.dependencies import (
    NO_AWAITED_CHILDREN,
    NO_DEPENDENCIES,
    AwaitedChildren,
    Dependencies,
    DependencyState,
    RelatedJob,
    awaited_children,
    find_cycle,
    related_job,
)
from asyncjob_operator.core.retention import FinishedJob

NO_CHILDREN: Final = ChildrenStatus()


class DependencyGraph:
    """Answers from the store what jobs depend on, and remembers the cycles that were found.

    `evaluate_later` is called with the other jobs of a cycle that was found. Searching for a cycle
    is slow, so jobs that may be in one are only noted, and searched from when they are evaluated.
    Jobs may wait for `arrays` as for children, and cancel them as they do children.
    """

    def __init__(
        self,
        store: JobStore,
        evaluate_later: Callable[[Iterable[str]], None],
        arrays: ChildArrays,
    ) -> None:
        self._store = store
        self._arrays = arrays
        self._relations = store.relations
        self._evaluate_later = evaluate_later
        self._cycles: dict[str, tuple[str, ...]] = {}
        self._cycle_suspects: set[str] = set()

    def dependencies(self, job: JobView) -> Dependencies:
        """Return the job's dependencies and its parent; search for a cycle if one is suspected."""
        if job.uid in self._cycle_suspects:
            self._search_cycle(job.uid)
        waiting = has_pending_dependencies(job)
        if not (job.parent_uid or waiting or job.waiting):
            return NO_DEPENDENCIES
        awaited = self._awaited_children(job) if job.waiting else NO_AWAITED_CHILDREN
        states = (
            tuple(self._dependency_state(job, dependency) for dependency in job.gates.depends_on)
            if waiting
            else ()
        )
        return Dependencies(states, self._parent(job), self._cycle(job), awaited)

    def siblings_status(self, job: JobView | FinishedJob) -> ChildrenStatus:
        """Return the state of all children of the job's parent, this job included."""
        return (
            self._relations.children_status((job.namespace, job.parent_uid))
            if job.parent_uid
            else NO_CHILDREN
        )

    def on_update(
        self, job: JobView, previous: JobView | FinishedJob | None, siblings: ChildrenStatus
    ) -> list[str]:
        """Record a stored job and return the jobs to evaluate because of what has changed.

        `siblings` is the state of its parent's children before the change. Jobs that wait for all
        children of a parent are returned when the first opens, the last ends or one fails, not for
        each child.
        """
        if previous and (previous.phase, previous.cascades_cancel) == (
            job.phase,
            job.cascades_cancel,
        ):
            return []
        found = self._possible_cycle_members(job) if previous is None or previous.finished else []
        if previous is None or (previous.finished, previous.cascades_cancel) != (
            job.finished,
            job.cascades_cancel,
        ):
            found += self._relations.dependents(job.namespace, job.name)
            found += self._relations.awaiting.members(job.uid)
        now = self.siblings_status(job)
        if now != siblings or now.failed_uid == job.uid:
            found += self._dependents_of_parent(job)
        if job.cascades_cancel:
            found += self._relations.children((job.namespace, job.uid))
            self._arrays.on_parent_cancelled(job.uid)
        if job.phase in FINAL_PHASES:
            self._forget_cycle(job.uid)
        return found

    def awaiting(self, child_uid: str) -> list[str]:
        """Return the parked jobs that wait for the end of this child."""
        return self._relations.awaiting.members(child_uid)

    def on_delete(self, job: JobView | FinishedJob, siblings: ChildrenStatus) -> list[str]:
        """Record that a job was deleted and return the jobs to evaluate because of that."""
        self._forget_cycle(job.uid)
        self._cycle_suspects.discard(job.uid)
        dependents = self._relations.dependents(job.namespace, job.name)
        dependents += self._relations.awaiting.members(job.uid)
        return (
            dependents
            if self.siblings_status(job) == siblings
            else dependents + self._dependents_of_parent(job)
        )

    def is_needed(self, job: JobView | FinishedJob) -> bool:
        """Return whether a job that has not started yet depends on this job, or on its parent."""
        if self._relations.has_dependents(job.namespace, job.name):
            return True
        parent = self._parent(job)
        return parent is not None and self._relations.has_dependents(parent.namespace, parent.name)

    def feeds_parent(self, job: JobView | FinishedJob) -> bool:
        """Return whether the job is a child of an unfinished job, which may ask how it ended."""
        parent = self._parent(job)
        return parent is not None and not parent.finished

    def _awaited_children(self, job: JobView) -> AwaitedChildren:
        open_uids: set[str] = set()
        absent: set[str] = set()
        for child in awaited_children(job):
            if child.kind != JOB_KIND:
                has_ended = self._arrays.has_ended(child.uid) if child.kind == ARRAY_KIND else False
                if not has_ended:
                    (absent if has_ended is None else open_uids).add(child.uid)
                continue
            known = self._find(child.uid)
            if known is not None and not known.finished:
                open_uids.add(child.uid)
            elif known is None and not self._store.is_deleted(child.uid):
                absent.add(child.uid)
        if not open_uids and not absent:
            return NO_AWAITED_CHILDREN
        return AwaitedChildren(frozenset(open_uids), frozenset(absent))

    def _dependents_of_parent(self, job: JobView | FinishedJob) -> list[str]:
        parent = self._parent(job)
        return self._relations.dependents(parent.namespace, parent.name) if parent else []

    def _possible_cycle_members(self, job: JobView) -> list[str]:
        """Return the jobs that may be in a cycle because of a job that is new, or open again."""
        found = [job.uid] if has_pending_dependencies(job) and self.is_needed(job) else []
        if self._relations.has_children((job.namespace, job.uid)):
            found += self._relations.dependents(job.namespace, job.name)
        self._cycle_suspects.update(found)
        return found

    def _search_cycle(self, start: str) -> None:
        self._cycle_suspects.discard(start)
        cycle = find_cycle(start, self._waits_for)
        for position, uid in enumerate(cycle):
            self._cycles[uid] = cycle[position:] + cycle[:position]
        self._cycle_suspects.difference_update(cycle)
        self._evaluate_later(cycle[1:])

    def _forget_cycle(self, uid: str) -> None:
        """Forget the cycle of a job that has finished or was deleted."""
        for member in self._cycles.get(uid, ()):
            self._cycles.pop(member, None)

    def _waits_for(self, uid: str) -> Iterator[str]:
        job = self._store.get(uid)
        if job is None or not has_pending_dependencies(job):
            return
        for dependency in job.gates.depends_on:
            other = self._relations.uid_of(job.namespace, dependency.name)
            if other is not None:
                yield other
                if dependency.children:
                    yield from self._relations.children((job.namespace, other))

    def _dependency_state(self, job: JobView, dependency: DependencyView) -> DependencyState:
        uid = self._relations.uid_of(job.namespace, dependency.name)
        related = self._related_job(uid) if uid else None
        if related is None or uid is None or not dependency.children:
            return DependencyState(dependency, related)
        children = self._relations.children_status((job.namespace, uid))
        failed_child = self._related_job(children.failed_uid) if children.failed_uid else None
        return DependencyState(dependency, related, children.any_open, failed_child)

    def _parent(self, job: JobView | FinishedJob) -> RelatedJob | None:
        parent = self._related_job(job.parent_uid) if job.parent_uid else None
        return parent if parent and parent.namespace == job.namespace else None

    def _cycle(self, job: JobView) -> tuple[RelatedJob, ...]:
        members = [self._related_job(uid) for uid in self._cycles.get(job.uid, ())]
        return tuple(member for member in members if member)

    def _related_job(self, uid: str) -> RelatedJob | None:
        known = self._find(uid)
        return related_job(known) if known else None

    def _find(self, uid: str) -> JobView | FinishedJob | None:
        return self._store.find(uid)
