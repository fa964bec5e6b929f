"""`spec.trigger`: one run now, whatever the schedule says; a derived name makes it happen once."""

from typing import Final

from asyncjob.lifecycle.derived_names import trigger_name
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.claim import MAX_RESERVED_RUNS, reservation_fields
from asyncjob_operator.core.cron.decision import (
    CronStatusFields,
    EventToRecord,
    StepResult,
    WriteStatus,
)
from asyncjob_operator.core.cron.due import blocking_run, count_scheduled, missed_total
from asyncjob_operator.core.cron.snapshot import CronJobSnapshot
from asyncjob_operator.core.cron.standing import display_fields, status_reason
from asyncjob_operator.core.cron.view import Run
from asyncjob_operator.core.moment import Now

TRIGGER: Final = "trigger"


def reserve_triggered_run(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Reserve the run that was asked for, however far the number was raised."""
    cron = snapshot.cron
    number = cron.trigger
    if number <= cron.triggers:
        return None
    if cron.concurrency_policy is ConcurrencyPolicy.FORBID and snapshot.busy:
        return _refuse_trigger(snapshot, number)
    run = Run(trigger_name(cron.name, number), int(now.wall), trigger=number)
    replaces = cron.concurrency_policy is ConcurrencyPolicy.REPLACE
    kept = () if replaces else snapshot.pending_runs
    fields: CronStatusFields = {
        **display_fields(snapshot, cron.settled_time),
        "triggers": number,
        **status_reason(CronReason.TRIGGERED, f"trigger {number}: {run.name}"),
        **reservation_fields(snapshot, [*kept, run][-MAX_RESERVED_RUNS:]),
    }
    if replaces:
        fields["missed"] = missed_total(cron, count_scheduled(snapshot.pending_runs))
    return WriteStatus(TRIGGER, fields, reserves=True, needs_fresh_list=snapshot.exclusive)


def _refuse_trigger(snapshot: CronJobSnapshot, number: int) -> WriteStatus:
    message = f"trigger {number} left out: {blocking_run(snapshot)} is unfinished"
    fields: CronStatusFields = {
        "triggers": number,
        **status_reason(CronReason.TRIGGER_REFUSED, message),
    }
    told = EventToRecord(CronReason.TRIGGER_REFUSED, message)
    return WriteStatus(TRIGGER, fields, needs_fresh_list=True, event=told)
