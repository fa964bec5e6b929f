"""What the status of a cron job displays, and which of its finished jobs are deleted.

What prevents running a time twice is the cron job's status, not its jobs. So the history limits may
remove jobs below the minimum age of retention, except for one kind: a run with an idempotency key
or a deduplication id stays as long as any other such job.
"""

from typing import Final

from asyncjob.json_types import Json, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.schedules import PERSISTENT_REASONS, CronReason
from asyncjob_operator.core.now import Now, to_epoch
from asyncjob_operator.core.schedules.calendar import Schedule
from asyncjob_operator.core.schedules.jobs import ScheduledJob
from asyncjob_operator.core.schedules.snapshot import (
    CronJobSnapshot,
    CronJobWait,
    CronStatusFields,
    DeleteJobs,
    EventToRecord,
    ScheduleProblem,
    StepResult,
    WriteStatus,
    recheck_at,
)
from asyncjob_operator.core.schedules.view import format_epoch

SHOW: Final = "show"
ON_DEMAND_REASONS: Final = frozenset(
    {
        CronReason.TRIGGERED,
        CronReason.TRIGGER_REFUSED,
        CronReason.BACKFILLING,
        CronReason.BACKFILLED,
        CronReason.BACKFILL_REFUSED,
        CronReason.NAME_TAKEN,
        CronReason.JOB_REFUSED,
    }
)
"""What also happens while a cron job is suspended: these reasons stay in the status."""

MAX_ACTIVE_LISTED: Final = 100
MAX_MESSAGE_LENGTH: Final = 1024
"""The schema's bounds of `active` and `message`."""

_MILLISECOND: Final = 0.001


def update_status(snapshot: CronJobSnapshot, _now: Now) -> StepResult:
    """Update the status if it is out of date."""
    status = snapshot.cron.status
    shown = {**current_reason(snapshot), **display_fields(snapshot, snapshot.cron.settled_time)}
    changed: CronStatusFields = {
        name: value for name, value in shown.items() if status.get(name) != value
    }
    if not changed:
        return None
    return WriteStatus(SHOW, changed, event=problem_event(snapshot, changed))


def problem_event(snapshot: CronJobSnapshot, changed: CronStatusFields) -> EventToRecord | None:
    """Return the Event about a problem of the cron job that is new."""
    schedule = snapshot.schedule
    known = changed.get("reason", "") in {"", snapshot.cron.status.get("reason")}
    return (
        None
        if known or not isinstance(schedule, ScheduleProblem)
        else EventToRecord(schedule.reason, schedule.message)
    )


def display_fields(snapshot: CronJobSnapshot, settled: float) -> CronStatusFields:
    """Return what the status shows once all times up to `settled` are settled."""
    unfinished = snapshot.unfinished
    active: list[Json] = [
        {"name": job.name, "uid": job.uid} for job in unfinished[-MAX_ACTIVE_LISTED:]
    ]
    return {
        "active": active or None,
        "activeCount": len(unfinished),
        "nextScheduleTime": _next_schedule_time(snapshot, settled),
        **_last_successful_time(snapshot),
    }


def current_reason(snapshot: CronJobSnapshot) -> CronStatusFields:
    """Return reason and message if the cron job is suspended or has a problem, or no longer."""
    if isinstance(snapshot.schedule, ScheduleProblem):
        return status_reason(snapshot.schedule.reason, snapshot.schedule.message)
    if snapshot.cron.suspend and snapshot.cron.status.get("reason") not in ON_DEMAND_REASONS:
        return status_reason(
            CronReason.SUSPENDED, "suspended: only trigger and backfill create jobs"
        )
    if not snapshot.cron.suspend and snapshot.cron.status.get("reason") in {
        None,
        *PERSISTENT_REASONS,
    }:
        return status_reason(CronReason.SCHEDULED, "")
    return {}


def status_reason(reason: CronReason, message: str) -> CronStatusFields:
    """Return the fields that tell what was done, or why nothing is."""
    return {"reason": reason.value, "message": message[:MAX_MESSAGE_LENGTH] or None}


def _next_schedule_time(snapshot: CronJobSnapshot, settled: float) -> str | None:
    schedule = snapshot.schedule
    if snapshot.cron.suspend or not isinstance(schedule, Schedule):
        return None
    next_time = schedule.first_after(settled)
    return None if next_time is None else format_epoch(next_time)


def _last_successful_time(snapshot: CronJobSnapshot) -> CronStatusFields:
    completed = [job.completed_at for job in snapshot.jobs if job.phase is Phase.SUCCEEDED]
    known = to_epoch(text(snapshot.cron.status, "lastSuccessfulTime"), default=0.0)
    newest = max(completed, default=0.0)
    return {"lastSuccessfulTime": format_epoch(newest)} if newest > known + _MILLISECOND else {}


HISTORY: Final = "history"
HISTORY_BATCH: Final = 50
"""Jobs that are deleted before the cron job is evaluated again, so that a run need not wait."""


def prune_history(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Delete finished jobs beyond the history limits, a few at a time."""
    if not snapshot.prunes_history:
        return None
    cron = snapshot.cron
    reserved = {run.name for run in cron.runs}
    finished = [
        job
        for job in snapshot.jobs
        if job.finished
        and not job.deleting
        and not job.has_open_request
        and job.name not in reserved
    ]
    succeeded = [job for job in finished if job.phase is Phase.SUCCEEDED]
    failed = [job for job in finished if job.phase is not Phase.SUCCEEDED]
    beyond = _oldest_beyond(succeeded, cron.successful_jobs_history_limit) + _oldest_beyond(
        failed, cron.failed_jobs_history_limit
    )
    deletable = [job for job in beyond if _deletable_at(job, snapshot) <= now.wall]
    if deletable:
        return DeleteJobs(HISTORY, tuple(deletable[:HISTORY_BATCH]))
    return _wait([_deletable_at(job, snapshot) for job in beyond], now)


def _deletable_at(job: ScheduledJob, snapshot: CronJobSnapshot) -> float:
    return job.completed_at + (snapshot.dedup_window if job.has_dedup_key else 0.0)


def _wait(times: list[float], now: Now) -> CronJobWait | None:
    return CronJobWait(recheck_at(min(times), now)) if times else None


def _oldest_beyond(jobs: list[ScheduledJob], limit: int) -> list[ScheduledJob]:
    ordered = sorted(jobs, key=lambda job: (job.completed_at, job.uid))
    return ordered[: max(len(ordered) - limit, 0)]
