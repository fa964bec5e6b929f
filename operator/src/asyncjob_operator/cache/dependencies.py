"""The dependency graph of the cached jobs and arrays: what each depends on, and where cycles are.

It also names the jobs that have to be evaluated again when a job or an array has changed; arrays
that have to be are evaluated later.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from asyncjob.lifecycle.arrays.state import ArrayView
from asyncjob.lifecycle.job_view import DependencyView, JobView
from asyncjob.lifecycle.phases import FINAL_PHASES
from asyncjob.names import ARRAY_KIND, JOB_KIND
from asyncjob_operator.cache.adapters import ObjectName
from asyncjob_operator.cache.child_arrays import ChildArrays
from asyncjob_operator.cache.jobs import (
    ChildrenStatus,
    JobStore,
    has_pending_dependencies,
)
from asyncjob_operator.cache.waiting_arrays import WaitingArrays
from asyncjob_operator.core.dependencies import (
    NO_AWAITED_CHILDREN,
    NO_DEPENDENCIES,
    AwaitedChildren,
    Dependencies,
    DependencyKey,
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
    Jobs may wait for `arrays` as for children, and cancel them as they do children. Both may depend
    on them, as `waiting_arrays` may depend on jobs.
    """

    def __init__(
        self,
        store: JobStore,
        evaluate_later: Callable[[Iterable[str]], None],
        arrays: ChildArrays,
        waiting_arrays: WaitingArrays,
    ) -> None:
        self._store = store
        self._arrays = arrays
        self._waiting_arrays = waiting_arrays
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
        states = self._states(job.namespace, job.gates.depends_on) if waiting else ()
        return Dependencies(states, self._parent(job), self._cycle(job.uid), awaited)

    def dependencies_of_array(self, array: ArrayView) -> Dependencies:
        """Return what an array depends on; search for a cycle if one is suspected."""
        if not array.pending_dependencies:
            return NO_DEPENDENCIES
        if array.uid in self._cycle_suspects:
            self._search_cycle(array.uid)
        states = self._states(array.namespace, array.pending_dependencies)
        return Dependencies(states, cycle=self._cycle(array.uid))

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
            found += self._dependents((job.namespace, JOB_KIND, job.name))
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

    def on_array_update(self, array: ArrayView) -> None:
        """Record an array as it is now; those that it may be in a cycle with are evaluated."""
        was_waiting = self._waiting_arrays.get(array.uid) is not None
        self._waiting_arrays.put(array)
        if not array.pending_dependencies:
            self._forget_cycle(array.uid)
        elif not was_waiting and self._has_dependents((array.namespace, ARRAY_KIND, array.name)):
            self._cycle_suspects.add(array.uid)

    def on_array_delete(self, uid: str) -> None:
        """Record that an array was deleted."""
        self._waiting_arrays.discard(uid)
        self._forget_cycle(uid)
        self._cycle_suspects.discard(uid)

    def on_array_news(self, uid: str, name: ObjectName) -> list[str]:
        """Return the jobs to evaluate because an array is new, has ended, goes on or is deleted."""
        namespace, called = name
        found = self._dependents((namespace, ARRAY_KIND, called))
        return found + self._relations.awaiting.members(uid)

    def dependents_on_arrays(self) -> list[str]:
        """Return the jobs that depend on arrays; arrays that wait are evaluated later."""
        self._waiting_arrays.wake(self._waiting_arrays.all())
        return self._relations.dependents_on(ARRAY_KIND)

    def on_delete(self, job: JobView | FinishedJob, siblings: ChildrenStatus) -> list[str]:
        """Record that a job was deleted and return the jobs to evaluate because of that."""
        self._forget_cycle(job.uid)
        self._cycle_suspects.discard(job.uid)
        dependents = self._dependents((job.namespace, JOB_KIND, job.name))
        dependents += self._relations.awaiting.members(job.uid)
        return (
            dependents
            if self.siblings_status(job) == siblings
            else dependents + self._dependents_of_parent(job)
        )

    def is_needed(self, job: JobView | FinishedJob) -> bool:
        """Return whether what has not started yet depends on this job, or on its parent."""
        if self._has_dependents((job.namespace, JOB_KIND, job.name)):
            return True
        parent = self._parent(job)
        return parent is not None and self._has_dependents(
            (parent.namespace, JOB_KIND, parent.name)
        )

    def is_array_needed(self, array: ArrayView) -> bool:
        """Return whether what has not started yet depends on this array."""
        return self._has_dependents((array.namespace, ARRAY_KIND, array.name))

    def _has_dependents(self, key: DependencyKey) -> bool:
        return self._relations.has_dependents(key) or self._waiting_arrays.has_dependents(key)

    def _dependents(self, key: DependencyKey) -> list[str]:
        """Return the jobs that depend on this; arrays that do are evaluated later."""
        if self._waiting_arrays:  # called for each job
            self._waiting_arrays.wake(self._waiting_arrays.dependents(key))
        return self._relations.dependents(key)

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
        return self._dependents((parent.namespace, JOB_KIND, parent.name)) if parent else []

    def _possible_cycle_members(self, job: JobView) -> list[str]:
        """Return the jobs that may be in a cycle because of a job that is new, or open again."""
        found = [job.uid] if has_pending_dependencies(job) and self.is_needed(job) else []
        if self._relations.has_children((job.namespace, job.uid)):
            found += self._dependents((job.namespace, JOB_KIND, job.name))
            arrays = self._waiting_arrays.dependents((job.namespace, JOB_KIND, job.name))
            self._cycle_suspects.update(arrays)
        self._cycle_suspects.update(found)
        return found

    def _search_cycle(self, start: str) -> None:
        self._cycle_suspects.discard(start)
        cycle = find_cycle(start, self._waits_for)
        for position, uid in enumerate(cycle):
            self._cycles[uid] = cycle[position:] + cycle[:position]
        self._cycle_suspects.difference_update(cycle)
        self._evaluate_later([uid for uid in cycle[1:] if uid in self._store])
        self._waiting_arrays.wake(cycle[1:])

    def _forget_cycle(self, uid: str) -> None:
        """Forget the cycle of a job that has finished or was deleted."""
        for member in self._cycles.get(uid, ()):
            self._cycles.pop(member, None)

    def _waits_for(self, uid: str) -> Iterator[str]:
        namespace, depends_on = self._pending_dependencies(uid)
        for dependency in depends_on:
            other = self._uid_of(namespace, dependency)
            if other is not None:
                yield other
                if dependency.children:
                    yield from self._relations.children((namespace, other))

    def _pending_dependencies(self, uid: str) -> tuple[str, Sequence[DependencyView]]:
        """Return namespace and dependencies of a job or an array that has not started yet."""
        array = self._waiting_arrays.get(uid)
        if array is not None:
            return array.namespace, array.pending_dependencies
        job = self._store.get(uid)
        if job is None or not has_pending_dependencies(job):
            return "", ()
        return job.namespace, job.gates.depends_on

    def _uid_of(self, namespace: str, dependency: DependencyView) -> str | None:
        if dependency.kind == ARRAY_KIND:
            return self._arrays.uid_of((namespace, dependency.name))
        return self._relations.uid_of(namespace, dependency.name)

    def _states(
        self, namespace: str, depends_on: Iterable[DependencyView]
    ) -> tuple[DependencyState, ...]:
        return tuple(self._dependency_state(namespace, one) for one in depends_on)

    def _dependency_state(self, namespace: str, dependency: DependencyView) -> DependencyState:
        uid = self._uid_of(namespace, dependency)
        if dependency.kind == ARRAY_KIND:
            array = self._arrays.find(uid) if uid else None
            unlisted = array is None and not self._arrays.are_listed(namespace)
            return DependencyState(dependency, array, unlisted=unlisted)
        related = self._related_job(uid) if uid else None
        if related is None or uid is None or not dependency.children:
            return DependencyState(dependency, related)
        children = self._relations.children_status((namespace, uid))
        failed_child = self._related_job(children.failed_uid) if children.failed_uid else None
        return DependencyState(dependency, related, children.any_open, failed_child)

    def _parent(self, job: JobView | FinishedJob) -> RelatedJob | None:
        parent = self._related_job(job.parent_uid) if job.parent_uid else None
        return parent if parent and parent.namespace == job.namespace else None

    def _cycle(self, uid: str) -> tuple[RelatedJob, ...]:
        members = [self._related_job(member) for member in self._cycles.get(uid, ())]
        return tuple(member for member in members if member)

    def _related_job(self, uid: str) -> RelatedJob | None:
        known = self._find(uid)
        return related_job(known) if known else self._arrays.find(uid)

    def _find(self, uid: str) -> JobView | FinishedJob | None:
        return self._store.find(uid)
