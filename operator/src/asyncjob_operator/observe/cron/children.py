"""The jobs of schedules, by schedule. For any other job one look at its labels is all it costs."""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.cron.child import Child, child_of, cron_uid_of

REMEMBERED: Final = 2000
"""So many names per schedule of jobs that there are or have been."""

STRANGERS: Final = 200
"""Of so many schedules that are not known, and have no job left, the names are kept.

Jobs are listed before schedules are, and one may be deleted in between.
"""

Cron = tuple[str, str]
"""Namespace and UID of a schedule. A label may say any UID: it counts in its own namespace."""


class Children:
    """`changed` is called with a schedule when one of its jobs comes, ends or goes."""

    def __init__(self, changed: Callable[[Cron], None] = lambda _: None) -> None:
        self.changed = changed
        self._by_cron: defaultdict[Cron, dict[str, Child]] = defaultdict(dict)
        self._cron_of: dict[str, Cron] = {}
        self._names: defaultdict[Cron, dict[str, None]] = defaultdict(dict)
        self._followed: set[Cron] = set()
        self._strangers: dict[Cron, None] = {}

    def saw(self, job: JobView, obj: JsonObject, seen_at: float) -> None:
        """Take a job as it is now, whosever it is; `seen_at` is wall time."""
        uid = cron_uid_of(obj)
        cron = (job.namespace, uid)
        if self._cron_of.get(job.uid, cron) != cron:
            self.lost(job.uid)
        if not uid:
            return
        before = self._by_cron[cron].get(job.uid)
        now = self._by_cron[cron][job.uid] = child_of(job, obj, seen_at, before)
        self._cron_of[job.uid] = cron
        self._strangers.pop(cron, None)
        self._remember(cron, job.name)
        if before is None or _tells(before) != _tells(now):
            self.changed(cron)

    def lost(self, uid: str) -> None:
        """Take that a job is gone."""
        cron = self._cron_of.pop(uid, None)
        if cron is not None:
            jobs = self._by_cron[cron]
            jobs.pop(uid, None)
            if not jobs:
                del self._by_cron[cron]
                self._estrange(cron)
            self.changed(cron)

    def of(self, cron: Cron) -> tuple[Child, ...]:
        """Return the jobs of a schedule."""
        return tuple(self._by_cron[cron].values()) if cron in self._by_cron else ()

    def count(self, cron: Cron) -> int:
        """Return how many jobs a schedule has."""
        return len(self._by_cron[cron]) if cron in self._by_cron else 0

    def names(self, cron: Cron) -> frozenset[str]:
        """Return names of jobs of the schedule that there are or have been."""
        return frozenset(self._names[cron]) if cron in self._names else frozenset()

    def follow(self, cron: Cron) -> None:
        """Take that there is such a schedule: what its jobs were called is kept from now on."""
        self._followed.add(cron)
        self._strangers.pop(cron, None)

    def forget(self, cron: Cron) -> None:
        """Take that a schedule is gone; its jobs stay."""
        self._followed.discard(cron)
        self._names.pop(cron, None)

    def _remember(self, cron: Cron, name: str) -> None:
        names = self._names[cron]
        names[name] = None
        while len(names) > REMEMBERED:
            del names[next(iter(names))]

    def _estrange(self, cron: Cron) -> None:
        """Forget, in time, the names of a schedule that is not known and has no job left."""
        if cron in self._followed or cron not in self._names:
            return
        self._strangers[cron] = None
        if len(self._strangers) > STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest], self._names[oldest]


def _tells(one: Child) -> tuple[object, ...]:
    return one.phase, one.finished, one.cancelling, one.wished, one.deleting
