"""The cache of the jobs that cron jobs have created, by cron job.

For any other job only its labels are read.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.job_view import JobView
from asyncjob_operator.core.schedules.jobs import ScheduledJob, cron_job_uid_of, scheduled_job

MAX_NAMES: Final = 2000
"""Names of present and past jobs that are remembered per cron job."""

MAX_ORPHANS: Final = 200
"""Unknown cron jobs without jobs whose jobs' names are remembered.

Jobs are listed before cron jobs are, and a cron job's last job may be deleted in between.
"""

CronJobKey = tuple[str, str]
"""Namespace and UID of a cron job: a label may hold any UID, so only its own namespace counts."""


class ScheduledJobCache:
    """Jobs by cron job."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[CronJobKey], None]] = []
        self._by_cron: defaultdict[CronJobKey, dict[str, ScheduledJob]] = defaultdict(dict)
        self._cron_of: dict[str, CronJobKey] = {}
        self._names: defaultdict[CronJobKey, dict[str, None]] = defaultdict(dict)
        self._cron_jobs: set[CronJobKey] = set()
        self._orphans: dict[CronJobKey, None] = {}

    def add_listener(self, listener: Callable[[CronJobKey], None]) -> None:
        """Call a function with each cron job of which a job changes from now on."""
        self._listeners.append(listener)

    def _notify(self, cron: CronJobKey) -> None:
        for listener in self._listeners:
            listener(cron)

    def on_update(
        self, job: JobView, obj: JsonObject, written_by: Callable[[JobView], float]
    ) -> None:
        """Store a job if a cron job created it.

        `written_by` returns when this version had been written at the latest, in epoch seconds.
        """
        uid = cron_job_uid_of(obj)
        cron = (job.namespace, uid)
        if self._cron_of.get(job.uid, cron) != cron:
            self.on_delete(job.uid)
        if not uid:
            return
        previous = self._by_cron[cron].get(job.uid)
        current = scheduled_job(job, obj, written_by(job), previous)
        self._by_cron[cron][job.uid] = current
        self._cron_of[job.uid] = cron
        self._orphans.pop(cron, None)
        self._remember(cron, job.name)
        if previous is None or _significant_fields(previous) != _significant_fields(current):
            self._notify(cron)

    def on_delete(self, uid: str) -> None:
        """Forget a deleted job."""
        cron = self._cron_of.pop(uid, None)
        if cron is not None:
            jobs = self._by_cron[cron]
            jobs.pop(uid, None)
            if not jobs:
                del self._by_cron[cron]
                self._mark_orphaned(cron)
            self._notify(cron)

    def jobs_of(self, cron: CronJobKey) -> tuple[ScheduledJob, ...]:
        """Return the jobs of a cron job."""
        return tuple(self._by_cron[cron].values()) if cron in self._by_cron else ()

    def count(self, cron: CronJobKey) -> int:
        """Return how many jobs a cron job has."""
        return len(self._by_cron[cron]) if cron in self._by_cron else 0

    def names(self, cron: CronJobKey) -> frozenset[str]:
        """Return the remembered names of the cron job's present and past jobs."""
        return frozenset(self._names[cron]) if cron in self._names else frozenset()

    def add_cron_job(self, cron: CronJobKey) -> None:
        """Record that a cron job exists: the names of its jobs are remembered from now on."""
        self._cron_jobs.add(cron)
        self._orphans.pop(cron, None)

    def remove_cron_job(self, cron: CronJobKey) -> None:
        """Forget a deleted cron job; its jobs stay."""
        self._cron_jobs.discard(cron)
        self._names.pop(cron, None)

    def _remember(self, cron: CronJobKey, name: str) -> None:
        names = self._names[cron]
        names[name] = None
        while len(names) > MAX_NAMES:
            del names[next(iter(names))]

    def _mark_orphaned(self, cron: CronJobKey) -> None:
        """Forget, after a while, the jobs' names of an unknown cron job that has no job left."""
        if cron in self._cron_jobs or cron not in self._names:
            return
        self._orphans[cron] = None
        if len(self._orphans) > MAX_ORPHANS:
            oldest = next(iter(self._orphans))
            del self._orphans[oldest], self._names[oldest]


def _significant_fields(job: ScheduledJob) -> tuple[object, ...]:
    return job.phase, job.finished, job.cancel_requested, job.has_open_request, job.deleting
