"""The decision about one schedule: an ordered chain of steps. The first effect wins."""

from typing import Final

from asyncjob_operator.core.cron.backfill import reserve_backfill_runs
from asyncjob_operator.core.cron.baseline import apply_spec_change
from asyncjob_operator.core.cron.claim import take_over
from asyncjob_operator.core.cron.completion import create_reserved_runs
from asyncjob_operator.core.cron.decision import CronJobDecision, CronJobHold, CronJobWait
from asyncjob_operator.core.cron.due import reserve_due_runs
from asyncjob_operator.core.cron.history import prune_history
from asyncjob_operator.core.cron.snapshot import CronJobSnapshot, CronJobStep
from asyncjob_operator.core.cron.standing import update_status
from asyncjob_operator.core.cron.trigger import reserve_triggered_run
from asyncjob_operator.core.moment import Now

STEPS: Final[tuple[CronJobStep, ...]] = (
    take_over,
    apply_spec_change,
    reserve_due_runs,
    reserve_triggered_run,
    reserve_backfill_runs,
    create_reserved_runs,
    prune_history,
    update_status,
)


def decide_cron_job(snapshot: CronJobSnapshot, now: Now) -> CronJobDecision:
    """Return the one effect due now, or when to look again without anything having changed."""
    if snapshot.cron.deleting:
        return CronJobDecision()
    again: float | None = None
    for step in STEPS:
        verdict = step(snapshot, now)
        if verdict is None:
            continue
        if isinstance(verdict, CronJobHold):
            return CronJobDecision(None, verdict.until)
        if not isinstance(verdict, CronJobWait):
            return CronJobDecision(verdict)
        again = verdict.until if again is None else min(again, verdict.until)
    return CronJobDecision(None, again)
