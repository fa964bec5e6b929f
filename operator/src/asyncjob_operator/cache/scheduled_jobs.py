"""The cache of the jobs that schedules have created, by schedule.

For any other job one look at its labels is all it costs.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.job_view import JobView
from asyncjob_operator.core.schedules.jobs import ScheduledJob, cron_job_uid_of, scheduled_job

MAX_NAMES: Final = 2000
"""So many names per schedule of jobs that there are or have been."""

MAX_ORPHANS: Final = 200
"""Of so many schedules that are not known, and have no job left, the names are kept.

Jobs are listed before schedules are, and one may be deleted in between.
"""

CronJobKey = tuple[str, str]
"""Namespace and UID of a schedule. A label may say any UID: it counts in its own namespace."""


class ScheduledJobCache:
    """`on_change` is called with a schedule when one of its jobs comes, ends or goes."""

    def __init__(self, on_change: Callable[[CronJobKey], None] = lambda _: None) -> None:
        self.on_change = on_change
        self._by_cron: defaultdict[CronJobKey, dict[str, ScheduledJob]] = defaultdict(dict)
        self._cron_of: dict[str, CronJobKey] = {}
        self._names: defaultdict[CronJobKey, dict[str, None]] = defaultdict(dict)
        self._cron_jobs: set[CronJobKey] = set()
        self._orphans: dict[CronJobKey, None] = {}

    def on_update(self, job: JobView, obj: JsonObject, observed_at: float) -> None:
        """Take a job as it is now, whosever it is; `observed_at` is wall time."""
        uid = cron_job_uid_of(obj)
        cron = (job.namespace, uid)
        if self._cron_of.get(job.uid, cron) != cron:
            self.on_delete(job.uid)
        if not uid:
            return
        before = self._by_cron[cron].get(job.uid)
        now = self._by_cron[cron][job.uid] = scheduled_job(job, obj, observed_at, before)
        self._cron_of[job.uid] = cron
        self._orphans.pop(cron, None)
        self._remember(cron, job.name)
        if before is None or _significant_fields(before) != _significant_fields(now):
            self.on_change(cron)

    def on_delete(self, uid: str) -> None:
        """Take that a job is gone."""
        cron = self._cron_of.pop(uid, None)
        if cron is not None:
            jobs = self._by_cron[cron]
            jobs.pop(uid, None)
            if not jobs:
                del self._by_cron[cron]
                self._mark_orphaned(cron)
            self.on_change(cron)

    def jobs_of(self, cron: CronJobKey) -> tuple[ScheduledJob, ...]:
        """Return the jobs of a schedule."""
        return tuple(self._by_cron[cron].values()) if cron in self._by_cron else ()

    def count(self, cron: CronJobKey) -> int:
        """Return how many jobs a schedule has."""
        return len(self._by_cron[cron]) if cron in self._by_cron else 0

    def names(self, cron: CronJobKey) -> frozenset[str]:
        """Return names of jobs of the schedule that there are or have been."""
        return frozenset(self._names[cron]) if cron in self._names else frozenset()

    def add_cron_job(self, cron: CronJobKey) -> None:
        """Take that there is such a schedule: what its jobs were called is kept from now on."""
        self._cron_jobs.add(cron)
        self._orphans.pop(cron, None)

    def remove_cron_job(self, cron: CronJobKey) -> None:
        """Take that a schedule is gone; its jobs stay."""
        self._cron_jobs.discard(cron)
        self._names.pop(cron, None)

    def _remember(self, cron: CronJobKey, name: str) -> None:
        names = self._names[cron]
        names[name] = None
        while len(names) > MAX_NAMES:
            del names[next(iter(names))]

    def _mark_orphaned(self, cron: CronJobKey) -> None:
        """Forget, in time, the names of a schedule that is not known and has no job left."""
        if cron in self._cron_jobs or cron not in self._names:
            return
        self._orphans[cron] = None
        if len(self._orphans) > MAX_ORPHANS:
            oldest = next(iter(self._orphans))
            del self._orphans[oldest], self._names[oldest]


def _significant_fields(one: ScheduledJob) -> tuple[object, ...]:
    return one.phase, one.finished, one.cancel_requested, one.has_open_request, one.deleting
