"""Which finished jobs of a schedule go: the oldest beyond its two limits.

The guard against running a time twice is in the schedule's status, not in its jobs, so these limits
go below the floors that retention knows, but for one: a run with a key that somebody may ask for
again stays as long as any other job with a key.
"""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.cron.child import ScheduledJob
from asyncjob_operator.core.cron.decision import CronJobWait, DeleteJobs, StepResult
from asyncjob_operator.core.cron.snapshot import CronJobSnapshot, recheck_at
from asyncjob_operator.core.moment import Now

HISTORY: Final = "history"
HISTORY_BATCH: Final = 50


def prune_history(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Remove finished jobs beyond the limits, a few at a time."""
    if not snapshot.prunes_history:
        return None
    cron = snapshot.cron
    reserved = {run.name for run in cron.runs}
    finished = [
        one
        for one in snapshot.jobs
        if one.finished
        and not one.deleting
        and not one.has_open_request
        and one.name not in reserved
    ]
    succeeded = [one for one in finished if one.phase is Phase.SUCCEEDED]
    failed = [one for one in finished if one.phase is not Phase.SUCCEEDED]
    beyond = _oldest_beyond(succeeded, cron.successful_jobs_history_limit) + _oldest_beyond(
        failed, cron.failed_jobs_history_limit
    )
    gone = [one for one in beyond if _deletable_at(one, snapshot) <= now.wall]
    if gone:
        return DeleteJobs(HISTORY, tuple(gone[:HISTORY_BATCH]))
    return _wait([_deletable_at(one, snapshot) for one in beyond], now)


def _deletable_at(one: ScheduledJob, snapshot: CronJobSnapshot) -> float:
    return one.completed_at + (snapshot.dedup_window if one.has_dedup_key else 0.0)


def _wait(times: list[float], now: Now) -> CronJobWait | None:
    return CronJobWait(recheck_at(min(times), now)) if times else None


def _oldest_beyond(jobs: list[ScheduledJob], limit: int) -> list[ScheduledJob]:
    ordered = sorted(jobs, key=lambda one: (one.completed_at, one.uid))
    return ordered[: max(len(ordered) - limit, 0)]
