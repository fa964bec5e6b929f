"""What the status shows beside decisions: unfinished jobs, the next time, what is in the way."""

from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.schedules import PERSISTENT_REASONS, CronReason
from asyncjob_operator.core.cron.decision import (
    CronStatusFields,
    EventToRecord,
    StepResult,
    WriteStatus,
)
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.snapshot import CronJobSnapshot, ScheduleProblem
from asyncjob_operator.core.cron.view import format_epoch
from asyncjob_operator.core.moment import Now, to_epoch

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
