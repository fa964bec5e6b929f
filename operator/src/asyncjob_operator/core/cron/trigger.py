"""`spec.trigger`: one run now, whatever the schedule says; a derived name makes it happen once."""

from typing import Final

from asyncjob.lifecycle.derived_names import trigger_name
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.claim import MAX_RUNS, reserve
from asyncjob_operator.core.cron.decision import Fields, Told, Verdict, Write
from asyncjob_operator.core.cron.due import given_up, in_the_way, missed
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.cron.standing import said, shown_of
from asyncjob_operator.core.cron.view import Run
from asyncjob_operator.core.moment import Moment

NAME: Final = "trigger"


def trigger(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Reserve the run that was asked for, however far the number was raised."""
    cron = snapshot.cron
    number = cron.trigger
    if number <= cron.triggers:
        return None
    if cron.concurrency is ConcurrencyPolicy.FORBID and snapshot.busy:
        return _refused(snapshot, number)
    run = Run(trigger_name(cron.name, number), int(now.wall), trigger=number)
    replaces = cron.concurrency is ConcurrencyPolicy.REPLACE
    kept = () if replaces else snapshot.pending
    fields: Fields = {
        **shown_of(snapshot, cron.settled),
        "triggers": number,
        **said(CronReason.TRIGGERED, f"trigger {number}: {run.name}"),
        **reserve(snapshot, [*kept, run][-MAX_RUNS:]),
    }
    if replaces:
        fields["missed"] = missed(cron, given_up(snapshot.pending))
    return Write(NAME, fields, claims=True, rests=snapshot.alone)


def _refused(snapshot: CronSnapshot, number: int) -> Write:
    message = f"trigger {number} left out: {in_the_way(snapshot)} is unfinished"
    fields: Fields = {"triggers": number, **said(CronReason.TRIGGER_REFUSED, message)}
    told = Told(CronReason.TRIGGER_REFUSED, message)
    return Write(NAME, fields, rests=True, told=told)
