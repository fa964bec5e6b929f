"""Times that have come: settles them, and reserves a run for each that is to have one."""

from collections.abc import Sequence
from typing import Final

from asyncjob.lifecycle.derived_names import run_name
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.claim import MAX_RESERVED_RUNS, reservation_fields
from asyncjob_operator.core.cron.decision import (
    CronJobWait,
    CronStatusFields,
    EventToRecord,
    StepResult,
    WriteStatus,
)
from asyncjob_operator.core.cron.misfire import DueTimes, due_times, fires_at
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.snapshot import CronJobSnapshot, recheck_at
from asyncjob_operator.core.cron.standing import display_fields, status_reason
from asyncjob_operator.core.cron.view import CronJobView, Run, format_epoch
from asyncjob_operator.core.moment import Now

DUE: Final = "schedule"
MAX_MISSED: Final = 2_147_483_647


def reserve_due_runs(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Settle the times that have come, or wait for the next."""
    cron, plan = snapshot.cron, snapshot.schedule
    if cron.suspend or not isinstance(plan, Schedule):
        return None
    first = plan.first_after(cron.settled_time)
    if first is None:
        return None
    if fires_at(cron, first) > now.wall:
        return CronJobWait(recheck_at(fires_at(cron, first), now))
    choice = due_times(cron, plan, now.wall)
    if not choice.times:
        return CronJobWait(recheck_at(now.wall + 1, now))
    return _settle(snapshot, choice)


def _settle(snapshot: CronJobSnapshot, due: DueTimes) -> WriteStatus:
    cron, busy = snapshot.cron, snapshot.busy
    runs, lost = _runs_to_reserve(snapshot, due, busy=busy)
    new = [run for run in runs if run not in cron.runs]
    reason = _due_reason(snapshot, due, new, busy=busy)
    message = _due_message(snapshot, due, new, reason)
    fields: CronStatusFields = {
        **display_fields(snapshot, due.times[-1]),
        **status_reason(reason, message),
        "settledTime": format_epoch(due.times[-1]),
        "missed": missed_total(cron, len(due.times) - len(new) + lost),
        **({"lastScheduleTime": format_epoch(new[-1].time)} if new else {}),
        **(reservation_fields(snapshot, runs) if new else {}),
    }
    quiet = reason in {CronReason.SCHEDULED, CronReason.REPLACED}
    told = None if quiet else EventToRecord(reason, message)
    return WriteStatus(
        DUE, fields, reserves=bool(new), needs_fresh_list=snapshot.exclusive, event=told
    )


def _runs_to_reserve(
    snapshot: CronJobSnapshot, due: DueTimes, *, busy: bool
) -> tuple[Sequence[Run], int]:
    """Return the runs to reserve, in order, and how many reserved before are given up."""
    pending = snapshot.pending_runs
    new = [Run(run_name(snapshot.cron.name, time), time) for time in due.to_run]
    match snapshot.cron.concurrency_policy:
        case ConcurrencyPolicy.FORBID:
            return (pending, 0) if busy else (new, 0)
        case ConcurrencyPolicy.REPLACE:
            return (new[-1:], count_scheduled(pending)) if new else (pending, 0)
        case ConcurrencyPolicy.ALLOW:
            runs = [*pending, *new]
            return runs[-MAX_RESERVED_RUNS:], max(len(runs) - MAX_RESERVED_RUNS, 0)


def is_scheduled(run: Run) -> bool:
    """Return whether its time asked for the run, and not a person."""
    return run.trigger is None and not run.backfill


def count_scheduled(runs: Sequence[Run]) -> int:
    """Return how many scheduled times stay without a run if these are not created."""
    return sum(map(is_scheduled, runs))


def missed_total(cron: CronJobView, more: int) -> int:
    """Return `status.missed` with so many more, as far as the schema lets it grow."""
    return min(cron.missed + more, MAX_MISSED)


def _due_reason(
    snapshot: CronJobSnapshot, due: DueTimes, new: Sequence[Run], *, busy: bool
) -> CronReason:
    if not new:
        forbids = snapshot.cron.concurrency_policy is ConcurrencyPolicy.FORBID and busy
        return CronReason.LEFT_OUT if forbids else CronReason.SKIPPED
    if due.late:
        return CronReason.MISFIRED
    replaces = snapshot.cron.concurrency_policy is ConcurrencyPolicy.REPLACE and busy
    return CronReason.REPLACED if replaces else CronReason.SCHEDULED


def _due_message(
    snapshot: CronJobSnapshot, due: DueTimes, new: Sequence[Run], reason: CronReason
) -> str:
    newest = format_epoch(due.times[-1])
    match reason:
        case CronReason.LEFT_OUT:
            return f"no run for {newest}: {blocking_run(snapshot)} is unfinished"
        case CronReason.SKIPPED:
            return f"{due.late} times missed, the last {newest}; Skip leaves them out"
        case CronReason.MISFIRED:
            policy = snapshot.cron.misfire_policy.value
            return f"{due.late} times missed, the last {newest}; {policy}: {len(new)} to run"
        case CronReason.REPLACED:
            return f"run for {newest} in place of {blocking_run(snapshot)}"
        case _:
            return f"run for {newest}"


def blocking_run(snapshot: CronJobSnapshot) -> str:
    """Return the name of a run that is unfinished or about to be created."""
    names = [one.name for one in snapshot.unfinished] or [run.name for run in snapshot.pending_runs]
    return names[0] if names else "a run"
