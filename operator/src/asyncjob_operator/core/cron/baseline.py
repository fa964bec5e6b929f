"""From when on times count: a schedule owes nothing for before it was as it is now."""

from typing import Final

from asyncjob_operator.core.cron.decision import CronStatusFields, StepResult, WriteStatus
from asyncjob_operator.core.cron.snapshot import CronJobSnapshot
from asyncjob_operator.core.cron.standing import display_fields, problem_event, standing_reason
from asyncjob_operator.core.cron.view import CronJobView, ObservedSpec, format_epoch
from asyncjob_operator.core.moment import Now

BASELINE: Final = "baseline"


def apply_spec_change(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Settle all times up to now when schedule, zone or suspension have changed."""
    cron = snapshot.cron
    seen = ObservedSpec(cron.schedule, cron.time_zone, cron.suspend)
    if cron.observed == seen:
        return None
    settled = (
        max(cron.settled_time, now.wall) if _resets_baseline(cron, seen) else cron.settled_time
    )
    fields: CronStatusFields = {
        "settledTime": format_epoch(settled),
        "observed": {
            "schedule": seen.schedule,
            "timeZone": seen.time_zone,
            "suspend": seen.suspend,
        },
    }
    shown = {**standing_reason(snapshot), **display_fields(snapshot, settled)}
    return WriteStatus(BASELINE, {**shown, **fields}, event=problem_event(snapshot, shown))


def _resets_baseline(cron: CronJobView, observed: ObservedSpec) -> bool:
    before = cron.observed
    if before is None:
        return False
    changed = (before.schedule, before.time_zone) != (observed.schedule, observed.time_zone)
    return changed or (before.suspend and not observed.suspend)
