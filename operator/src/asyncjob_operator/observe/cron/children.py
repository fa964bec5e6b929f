"""The jobs of schedules, by schedule. For any other job one look at its labels is all it costs."""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.cron.child import Child, child_of, cron_uid_of

REMEMBERED: Final = 2000
"""So many names per schedule of jobs that there are or have been."""


class Children:
    """`changed` is called with a schedule's UID when one of its jobs comes, ends or goes."""

    def __init__(self, changed: Callable[[str], None] = lambda _: None) -> None:
        self.changed = changed
        self._by_cron: defaultdict[str, dict[str, Child]] = defaultdict(dict)
        self._cron_of: dict[str, str] = {}
        self._names: defaultdict[str, dict[str, None]] = defaultdict(dict)

    def saw(self, job: JobView, obj: JsonObject) -> None:
        """Take a job as it is now, whosever it is."""
        cron = cron_uid_of(obj)
        if not cron:
            return
        before = self._by_cron[cron].get(job.uid)
        now = self._by_cron[cron][job.uid] = child_of(job, obj)
        self._cron_of[job.uid] = cron
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
            self.changed(cron)

    def of(self, cron: str) -> tuple[Child, ...]:
        """Return the jobs of a schedule."""
        return tuple(self._by_cron[cron].values()) if cron in self._by_cron else ()

    def names(self, cron: str) -> frozenset[str]:
        """Return names of jobs of the schedule that there are or have been."""
        return frozenset(self._names[cron]) if cron in self._names else frozenset()

    def forget(self, cron: str) -> None:
        """Take that a schedule is gone; its jobs stay."""
        self._names.pop(cron, None)

    def _remember(self, cron: str, name: str) -> None:
        names = self._names[cron]
        names[name] = None
        while len(names) > REMEMBERED:
            del names[next(iter(names))]


def _tells(one: Child) -> tuple[object, ...]:
    return one.phase, one.finished, one.cancelling, one.wished, one.deleting
