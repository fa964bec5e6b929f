"""What the status of a schedule displays, and which of its finished jobs are deleted.

The guard against running a time twice is in the schedule's status, not in its jobs, so the history
limits go below the floors that retention knows, but for one: a run with a key that somebody may
ask for again stays as long as any other job with a key.
"""

from typing import Final

from asyncjob.json_types import Json
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
"""Events that suspension does not keep from happening; what they tell stays."""

MAX_ACTIVE_LISTED: Final = 100
MAX_MESSAGE_LENGTH: Final = 1024
_MILLISECOND: Final = 0.001


def update_status(snapshot: CronJobSnapshot, _now: Now) -> StepResult:
    """Bring the status up to date, if it is not."""
    status = snapshot.cron.status
    shown = {**standing_reason(snapshot), **display_fields(snapshot, snapshot.cron.settled_time)}
    changed: CronStatusFields = {
        name: value for name, value in shown.items() if status.get(name) != value
    }
    if not changed:
        return None
    return WriteStatus(SHOW, changed, event=problem_event(snapshot, changed))


def problem_event(snapshot: CronJobSnapshot, changed: CronStatusFields) -> EventToRecord | None:
    """Return what people are told if a problem has come up."""
    plan = snapshot.schedule
    known = changed.get("reason", "") in {"", snapshot.cron.status.get("reason")}
    return (
        None
        if known or not isinstance(plan, ScheduleProblem)
        else EventToRecord(plan.reason, plan.message)
    )


def display_fields(snapshot: CronJobSnapshot, settled: float) -> CronStatusFields:
    """Return what the status shows once everything up to `settled` is settled."""
    live = snapshot.unfinished
    active: list[Json] = [{"name": one.name, "uid": one.uid} for one in live[-MAX_ACTIVE_LISTED:]]
    return {
        "active": active or None,
        "activeCount": len(live),
        "nextScheduleTime": _next_schedule_time(snapshot, settled),
        **_last_successful_time(snapshot),
    }


def standing_reason(snapshot: CronJobSnapshot) -> CronStatusFields:
    """Return reason and message where something stands in the way, or no longer does."""
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
    """Return the fields that say what was done or what is in the way."""
    return {"reason": reason.value, "message": message[:MAX_MESSAGE_LENGTH] or None}


def _next_schedule_time(snapshot: CronJobSnapshot, settled: float) -> str | None:
    plan = snapshot.schedule
    if snapshot.cron.suspend or not isinstance(plan, Schedule):
        return None
    following = plan.first_after(settled)
    return None if following is None else format_epoch(following)


def _last_successful_time(snapshot: CronJobSnapshot) -> CronStatusFields:
    done = [one.completed_at for one in snapshot.jobs if one.phase is Phase.SUCCEEDED]
    before = snapshot.cron.status.get("lastSuccessfulTime")
    known = to_epoch(before, default=0.0) if isinstance(before, str) else 0.0
    newest = max(done, default=0.0)
    return {"lastSuccessfulTime": format_epoch(newest)} if newest > known + _MILLISECOND else {}


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
