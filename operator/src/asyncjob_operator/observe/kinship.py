"""Finds what ties a job to others, and who is to be looked at again when a job has changed."""

from collections.abc import Iterator

from asyncjob.lifecycle.phases import FROZEN
from asyncjob.lifecycle.view import Dependency, JobView
from asyncjob_operator.core.cycle import find_cycle
from asyncjob_operator.core.retention import Finished
from asyncjob_operator.core.ties import FREE, Need, Relative, Ties, relative
from asyncjob_operator.observe.relations import waits
from asyncjob_operator.observe.store import JobStore


class Kinship:
    """Reads the store; remembers the cycles, which come about with a job and end with one."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._related = store.relations
        self._cycles: dict[str, tuple[str, ...]] = {}

    def ties(self, job: JobView) -> Ties:
        """Return what ties the job to others."""
        waiting = waits(job)
        if not job.parent and not waiting:
            return FREE
        needs = tuple(self._need(job, one) for one in job.gates.depends_on) if waiting else ()
        return Ties(needs, self._parent(job), self._cycle(job))

    def changed(self, job: JobView, before: JobView | Finished | None) -> list[str]:
        """Take a job as it is now, and return those to whom what is new of it matters."""
        if before and (before.phase, before.cascades) == (job.phase, job.cascades):
            return []
        found = self._arrived(job) if before is None or before.finished else []
        if before is None or (before.finished, before.cascades) != (job.finished, job.cascades):
            found += self.dependents(job)
        if job.cascades:
            found += self._related.children(job.uid)
        if job.phase in FROZEN:
            self._untie(job.uid)
        return found

    def gone(self, job: JobView | Finished) -> list[str]:
        """Take that there is no such job any more, and return those to whom that matters."""
        self._untie(job.uid)
        return self.dependents(job)

    def dependents(self, job: JobView | Finished) -> list[str]:
        """Return the jobs that wait for this one, or for the children of its parent."""
        mine = self._related.waiting_for(job.namespace, job.name)
        parent = self._known(job.parent) if job.parent else None
        if parent is None:
            return mine
        return mine + self._related.waiting_for(parent.namespace, parent.name)

    def is_needed(self, job: Finished) -> bool:
        """Return whether a job that has not started yet depends on this finished one."""
        return bool(self.dependents(job))

    def _arrived(self, job: JobView) -> list[str]:
        """Return whom a job that is new, or open again, makes wait for ever."""
        found: list[str] = []
        for start in self._suspects(job):
            cycle = find_cycle(start, self._waits_for)
            for place, uid in enumerate(cycle):
                self._cycles[uid] = cycle[place:] + cycle[:place]
            found += cycle
        return found

    def _untie(self, uid: str) -> None:
        """Take that nobody waits for a job for ever: it is no more, or it has got out."""
        for member in self._cycles.get(uid, ()):
            self._cycles.pop(member, None)

    def _suspects(self, job: JobView) -> list[str]:
        """Return where to look for cycles: one through the job, or through its children."""
        mine = [job.uid] if waits(job) and self.dependents(job) else []
        if not self._related.children(job.uid):
            return mine
        return mine + self._related.waiting_for(job.namespace, job.name)

    def _waits_for(self, uid: str) -> Iterator[str]:
        job = self._store.get(uid)
        if job is None or not waits(job):
            return
        for one in job.gates.depends_on:
            other = self._related.uid(job.namespace, one.name)
            if other is not None:
                yield other
                yield from self._related.children(other) if one.children else ()

    def _need(self, job: JobView, one: Dependency) -> Need:
        uid = self._related.uid(job.namespace, one.name)
        found = self._relative(uid) if uid else None
        if found is None or uid is None or not one.children:
            return Need(one, found)
        return Need(one, found, self._related.has_open_children(uid), self._failed_child(uid))

    def _failed_child(self, uid: str) -> Relative | None:
        if not self._related.has_failed_children(uid):
            return None
        children = map(self._relative, self._related.children(uid))
        return next((child for child in children if child and child.failed), None)

    def _parent(self, job: JobView) -> Relative | None:
        parent = self._relative(job.parent) if job.parent else None
        return parent if parent and parent.namespace == job.namespace else None

    def _cycle(self, job: JobView) -> tuple[Relative, ...]:
        members = [self._relative(uid) for uid in self._cycles.get(job.uid, ())]
        return tuple(member for member in members if member)

    def _relative(self, uid: str) -> Relative | None:
        known = self._known(uid)
        return relative(known) if known else None

    def _known(self, uid: str) -> JobView | Finished | None:
        return self._store.known(uid)
