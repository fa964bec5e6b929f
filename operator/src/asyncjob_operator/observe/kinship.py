"""Finds what ties a job to others, and who is to be looked at again when a job has changed."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from asyncjob.lifecycle.phases import FROZEN
from asyncjob.lifecycle.view import Dependency, JobView
from asyncjob_operator.core.cycle import find_cycle
from asyncjob_operator.core.retention import Finished
from asyncjob_operator.core.ties import FREE, Need, Relative, Ties, relative
from asyncjob_operator.observe.relations import Family, waits
from asyncjob_operator.observe.store import JobStore

NO_FAMILY: Final = Family()


class Kinship:
    """Reads the store; remembers the cycles, which come about with a job and end with one.

    `stir` is called with the other jobs of a cycle that was found. The search for one is long, so
    it is done for each job that may be in one when that job is looked at.
    """

    def __init__(self, store: JobStore, stir: Callable[[Iterable[str]], None]) -> None:
        self._store = store
        self._related = store.relations
        self._stir = stir
        self._cycles: dict[str, tuple[str, ...]] = {}
        self._suspected: set[str] = set()

    def ties(self, job: JobView) -> Ties:
        """Return what ties the job to others."""
        if job.uid in self._suspected:
            self._search(job.uid)
        waiting = waits(job)
        if not job.parent and not waiting:
            return FREE
        needs = tuple(self._need(job, one) for one in job.gates.depends_on) if waiting else ()
        return Ties(needs, self._parent(job), self._cycle(job))

    def family(self, job: JobView | Finished) -> Family:
        """Return what is known of the children of the job's parent, this one among them."""
        return self._related.family((job.namespace, job.parent)) if job.parent else NO_FAMILY

    def changed(self, job: JobView, before: JobView | Finished | None, family: Family) -> list[str]:
        """Take a job as it is now, and return those to whom what is new of it matters.

        `family` is as it was before. Who waits for all children of a parent hears of the first that
        is open, of the last, and of one that failed, and not of each.
        """
        if before and (before.phase, before.cascades) == (job.phase, job.cascades):
            return []
        found = self._arrived(job) if before is None or before.finished else []
        if before is None or (before.finished, before.cascades) != (job.finished, job.cascades):
            found += self._related.waiting_for(job.namespace, job.name)
        now = self.family(job)
        if now != family or now.failed == job.uid:
            found += self._waiting_for_parent(job)
        if job.cascades:
            found += self._related.children((job.namespace, job.uid))
        if job.phase in FROZEN:
            self._untie(job.uid)
        return found

    def gone(self, job: JobView | Finished, family: Family) -> list[str]:
        """Take that there is no such job any more, and return those to whom that matters."""
        self._untie(job.uid)
        self._suspected.discard(job.uid)
        mine = self._related.waiting_for(job.namespace, job.name)
        return mine if self.family(job) == family else mine + self._waiting_for_parent(job)

    def is_needed(self, job: JobView | Finished) -> bool:
        """Return whether a job that has not started yet depends on it, or on its siblings too."""
        if self._related.is_waited_for(job.namespace, job.name):
            return True
        parent = self._parent(job)
        return parent is not None and self._related.is_waited_for(parent.namespace, parent.name)

    def _waiting_for_parent(self, job: JobView | Finished) -> list[str]:
        parent = self._parent(job)
        return self._related.waiting_for(parent.namespace, parent.name) if parent else []

    def _arrived(self, job: JobView) -> list[str]:
        """Return who may be in a cycle by a job that is new, or open again."""
        found = [job.uid] if waits(job) and self.is_needed(job) else []
        if self._related.has_children((job.namespace, job.uid)):
            found += self._related.waiting_for(job.namespace, job.name)
        self._suspected.update(found)
        return found

    def _search(self, start: str) -> None:
        self._suspected.discard(start)
        cycle = find_cycle(start, self._waits_for)
        for place, uid in enumerate(cycle):
            self._cycles[uid] = cycle[place:] + cycle[:place]
        self._suspected.difference_update(cycle)
        self._stir(cycle[1:])

    def _untie(self, uid: str) -> None:
        """Take that nobody waits for a job for ever: it is no more, or it has got out."""
        for member in self._cycles.get(uid, ()):
            self._cycles.pop(member, None)

    def _waits_for(self, uid: str) -> Iterator[str]:
        job = self._store.get(uid)
        if job is None or not waits(job):
            return
        for one in job.gates.depends_on:
            other = self._related.uid(job.namespace, one.name)
            if other is not None:
                yield other
                yield from self._related.children((job.namespace, other)) if one.children else ()

    def _need(self, job: JobView, one: Dependency) -> Need:
        uid = self._related.uid(job.namespace, one.name)
        found = self._relative(uid) if uid else None
        if found is None or uid is None or not one.children:
            return Need(one, found)
        family = self._related.family((job.namespace, uid))
        failed = self._relative(family.failed) if family.failed else None
        return Need(one, found, family.open, failed)

    def _parent(self, job: JobView | Finished) -> Relative | None:
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
