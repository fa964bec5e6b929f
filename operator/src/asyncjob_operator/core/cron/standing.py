"""What the status shows beside decisions: unfinished jobs, the next time, what is in the way."""

from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.schedules import STANDING, CronReason
from asyncjob_operator.core.cron.decision import Fields, Told, Verdict, Write
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.snapshot import CronSnapshot, Problem
from asyncjob_operator.core.cron.view import stamp
from asyncjob_operator.core.moment import Moment, epoch

NAME: Final = "show"
ON_DEMAND: Final = frozenset(
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

MAX_ACTIVE: Final = 100
MAX_MESSAGE: Final = 1024
_MILLISECOND: Final = 0.001


def show(snapshot: CronSnapshot, _now: Moment) -> Verdict:
    """Bring the status up to date, if it is not."""
    status = snapshot.cron.status
    shown = {**standing(snapshot), **shown_of(snapshot, snapshot.cron.settled)}
    changed: Fields = {name: value for name, value in shown.items() if status.get(name) != value}
    if not changed:
        return None
    return Write(NAME, changed, told=told_of(snapshot, changed))


def told_of(snapshot: CronSnapshot, changed: Fields) -> Told | None:
    """Return what people are told if a problem has come up."""
    plan = snapshot.plan
    known = changed.get("reason", "") in {"", snapshot.cron.status.get("reason")}
    return None if known or not isinstance(plan, Problem) else Told(plan.reason, plan.message)


def shown_of(snapshot: CronSnapshot, settled: float) -> Fields:
    """Return what the status shows once everything up to `settled` is settled."""
    live = snapshot.unfinished
    active: list[Json] = [{"name": one.name, "uid": one.uid} for one in live[-MAX_ACTIVE:]]
    return {
        "active": active or None,
        "activeCount": len(live),
        "nextScheduleTime": _next(snapshot, settled),
        **_last_success(snapshot),
    }


def standing(snapshot: CronSnapshot) -> Fields:
    """Return reason and message where something stands in the way, or no longer does."""
    if isinstance(snapshot.plan, Problem):
        return said(snapshot.plan.reason, snapshot.plan.message)
    if snapshot.cron.suspend and snapshot.cron.status.get("reason") not in ON_DEMAND:
        return said(CronReason.SUSPENDED, "suspended: only trigger and backfill create jobs")
    if not snapshot.cron.suspend and snapshot.cron.status.get("reason") in {None, *STANDING}:
        return said(CronReason.SCHEDULED, "")
    return {}


def said(reason: CronReason, message: str) -> Fields:
    """Return the fields that say what was done or what is in the way."""
    return {"reason": reason.value, "message": message[:MAX_MESSAGE] or None}


def _next(snapshot: CronSnapshot, settled: float) -> str | None:
    plan = snapshot.plan
    if snapshot.cron.suspend or not isinstance(plan, Schedule):
        return None
    following = plan.first_after(settled)
    return None if following is None else stamp(following)


def _last_success(snapshot: CronSnapshot) -> Fields:
    done = [one.completed for one in snapshot.children if one.phase is Phase.SUCCEEDED]
    before = snapshot.cron.status.get("lastSuccessfulTime")
    known = epoch(before, otherwise=0.0) if isinstance(before, str) else 0.0
    newest = max(done, default=0.0)
    return {"lastSuccessfulTime": stamp(newest)} if newest > known + _MILLISECOND else {}
