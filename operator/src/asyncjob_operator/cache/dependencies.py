"""The dependency graph of the cached jobs: what a job depends on, and where there are cycles.

It also names the jobs that have to be evaluated again when a job has changed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from asyncjob.lifecycle.job_view import DependencyView, JobView
from asyncjob.lifecycle.phases import TERMINAL_PHASES
from asyncjob_operator.cache.jobs import ChildrenStatus, JobStore, has_pending_dependencies
from asyncjob_operator.core.dependencies import (
    NO_DEPENDENCIES,
    Dependencies,
    DependencyState,
    RelatedJob,
    find_cycle,
    related_job,
)
from asyncjob_operator.core.retention import FinishedJob

NO_CHILDREN: Final = ChildrenStatus()


class DependencyGraph:
    """Reads the store; remembers the cycles, which come about with a job and end with one.

    `evaluate_later` is called with the other jobs of a cycle that was found. The search for one is
    long, so it is done for each job that may be in one when that job is looked at.
    """

    def __init__(self, store: JobStore, evaluate_later: Callable[[Iterable[str]], None]) -> None:
        self._store = store
        self._relations = store.relations
        self._evaluate_later = evaluate_later
        self._cycles: dict[str, tuple[str, ...]] = {}
        self._cycle_suspects: set[str] = set()

    def dependencies(self, job: JobView) -> Dependencies:
        """Return what ties the job to others."""
        if job.uid in self._cycle_suspects:
            self._search_cycle(job.uid)
        waiting = has_pending_dependencies(job)
        if not job.parent_uid and not waiting:
            return NO_DEPENDENCIES
        needs = (
            tuple(self._dependency_state(job, one) for one in job.gates.depends_on)
            if waiting
            else ()
        )
        return Dependencies(needs, self._parent(job), self._cycle(job))

    def siblings_status(self, job: JobView | FinishedJob) -> ChildrenStatus:
        """Return what is known of the children of the job's parent, this one among them."""
        return (
            self._relations.children_status((job.namespace, job.parent_uid))
            if job.parent_uid
            else NO_CHILDREN
        )

    def on_update(
        self, job: JobView, previous: JobView | FinishedJob | None, siblings: ChildrenStatus
    ) -> list[str]:
        """Take a job as it is now, and return those to whom what is new of it matters.

        `siblings` is as it was before. Who waits for all children of a parent hears of the first
        that is open, of the last, and of one that failed, and not of each.
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
        now = self.siblings_status(job)
        if now != siblings or now.failed_uid == job.uid:
            found += self._dependents_of_parent(job)
        if job.cascades_cancel:
            found += self._relations.children((job.namespace, job.uid))
        if job.phase in TERMINAL_PHASES:
            self._forget_cycle(job.uid)
        return found

    def on_delete(self, job: JobView | FinishedJob, siblings: ChildrenStatus) -> list[str]:
        """Take that there is no such job any more, and return those to whom that matters."""
        self._forget_cycle(job.uid)
        self._cycle_suspects.discard(job.uid)
        mine = self._relations.dependents(job.namespace, job.name)
        return (
            mine
            if self.siblings_status(job) == siblings
            else mine + self._dependents_of_parent(job)
        )

    def is_needed(self, job: JobView | FinishedJob) -> bool:
        """Return whether a job that has not started yet depends on it, or on its siblings too."""
        if self._relations.has_dependents(job.namespace, job.name):
            return True
        parent = self._parent(job)
        return parent is not None and self._relations.has_dependents(parent.namespace, parent.name)

    def _dependents_of_parent(self, job: JobView | FinishedJob) -> list[str]:
        parent = self._parent(job)
        return self._relations.dependents(parent.namespace, parent.name) if parent else []

    def _possible_cycle_members(self, job: JobView) -> list[str]:
        """Return who may be in a cycle by a job that is new, or open again."""
        found = [job.uid] if has_pending_dependencies(job) and self.is_needed(job) else []
        if self._relations.has_children((job.namespace, job.uid)):
            found += self._relations.dependents(job.namespace, job.name)
        self._cycle_suspects.update(found)
        return found

    def _search_cycle(self, start: str) -> None:
        self._cycle_suspects.discard(start)
        cycle = find_cycle(start, self._waits_for)
        for place, uid in enumerate(cycle):
            self._cycles[uid] = cycle[place:] + cycle[:place]
        self._cycle_suspects.difference_update(cycle)
        self._evaluate_later(cycle[1:])

    def _forget_cycle(self, uid: str) -> None:
        """Take that nobody waits for a job for ever: it is no more, or it has got out."""
        for member in self._cycles.get(uid, ()):
            self._cycles.pop(member, None)

    def _waits_for(self, uid: str) -> Iterator[str]:
        job = self._store.get(uid)
        if job is None or not has_pending_dependencies(job):
            return
        for one in job.gates.depends_on:
            other = self._relations.uid_of(job.namespace, one.name)
            if other is not None:
                yield other
                yield from self._relations.children((job.namespace, other)) if one.children else ()

    def _dependency_state(self, job: JobView, one: DependencyView) -> DependencyState:
        uid = self._relations.uid_of(job.namespace, one.name)
        found = self._related_job(uid) if uid else None
        if found is None or uid is None or not one.children:
            return DependencyState(one, found)
        family = self._relations.children_status((job.namespace, uid))
        failed = self._related_job(family.failed_uid) if family.failed_uid else None
        return DependencyState(one, found, family.any_open, failed)

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
