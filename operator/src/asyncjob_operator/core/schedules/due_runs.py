"""Scheduled times that have come: which of them are run, and the write that reserves their runs.

A time is missed if its run could not start within the deadline. However many were missed, the
cron job goes on; only the newest `MAX_TIMES_CONSIDERED` are considered and counted. When schedule
or time zone change, or a suspension ends, all times up to now are settled: no run is made up for
times before the change.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from asyncjob.lifecycle.derived_jobs import run_name
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason, MisfirePolicy
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.calendar import Schedule, stable_hash
from asyncjob_operator.core.schedules.reservation import MAX_RESERVED_RUNS, reservation_fields
from asyncjob_operator.core.schedules.snapshot import (
    CronJobSnapshot,
    CronJobWait,
    CronStatusFields,
    EventToRecord,
    StepResult,
    WriteStatus,
    recheck_at,
)
from asyncjob_operator.core.schedules.status import (
    current_reason,
    display_fields,
    problem_event,
    status_reason,
)
from asyncjob_operator.core.schedules.view import CronJobView, ObservedSpec, Run, format_epoch

ON_TIME_SECONDS: Final = 60
"""Delay up to which a run is on time if startingDeadlineSeconds is not set."""

MIN_DEADLINE_SECONDS: Final = 5
"""The shortest deadline: the operator itself may take this long from a time to its run.

With a deadline of 0 and the policy Skip a cron job would never run.
"""

MAX_TIMES_CONSIDERED: Final = 10_000
"""About a week of a schedule that fires each minute. It bounds the work after an outage of months;
earlier times are settled without being counted."""


@dataclass(frozen=True, slots=True)
class DueTimes:
    """Scheduled times that have come, in order."""

    times: tuple[int, ...]
    to_run: tuple[int, ...]
    """Those of the times that get a run."""

    late: int
    """How many of the times were missed."""


def fires_at(cron: CronJobView, time: int) -> int:
    """Return when the run of a scheduled time is to be created, jitter included."""
    return time + (
        stable_hash(f"{cron.key} {time}", cron.jitter_seconds + 1) if cron.jitter_seconds else 0
    )


def due_times(cron: CronJobView, schedule: Schedule, wall: float) -> DueTimes:
    """Return the times that have come since the settled time, and which of them to run."""
    listed = schedule.newest_times(cron.settled_time, wall, MAX_TIMES_CONSIDERED)
    times = tuple(takewhile(lambda time: fires_at(cron, time) <= wall, listed))
    return _select_due(cron, times, wall)


def still_due(cron: CronJobView, times: Sequence[int], wall: float) -> Sequence[int]:
    """Return which of these times, reserved earlier, would be run if they were chosen now."""
    return _select_due(cron, tuple(times), wall).to_run


def _select_due(cron: CronJobView, times: tuple[int, ...], wall: float) -> DueTimes:
    configured = (
        ON_TIME_SECONDS
        if cron.starting_deadline_seconds is None
        else cron.starting_deadline_seconds
    )
    deadline = max(configured, MIN_DEADLINE_SECONDS)
    on_time = [time for time in times if wall - fires_at(cron, time) <= deadline]
    chosen = _apply_misfire_policy(cron.misfire_policy, times, on_time)[-cron.misfire_limit :]
    return DueTimes(times, tuple(chosen), len(times) - len(on_time))


def _apply_misfire_policy(
    policy: MisfirePolicy, times: Sequence[int], on_time: list[int]
) -> Sequence[int]:
    match policy:
        case MisfirePolicy.SKIP:
            return on_time
        case MisfirePolicy.FIRE_ONCE:
            return on_time or times[-1:]
        case MisfirePolicy.FIRE_ALL:
            return times


BASELINE: Final = "baseline"


def apply_spec_change(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Record a changed schedule, zone or suspension, and settle the times up to now."""
    cron = snapshot.cron
    current = ObservedSpec(cron.schedule, cron.time_zone, cron.suspend)
    if cron.observed == current:
        return None
    settled = (
        max(cron.settled_time, now.wall) if _resets_baseline(cron, current) else cron.settled_time
    )
    fields: CronStatusFields = {
        "settledTime": format_epoch(settled),
        "observed": {
            "schedule": current.schedule,
            "timeZone": current.time_zone,
            "suspend": current.suspend,
        },
    }
    shown = {**current_reason(snapshot), **display_fields(snapshot, settled)}
    return WriteStatus(BASELINE, {**shown, **fields}, event=problem_event(snapshot, shown))


def _resets_baseline(cron: CronJobView, observed: ObservedSpec) -> bool:
    previous = cron.observed
    if previous is None:
        return False
    changed = (previous.schedule, previous.time_zone) != (observed.schedule, observed.time_zone)
    return changed or (previous.suspend and not observed.suspend)


SCHEDULE: Final = "schedule"
MAX_MISSED: Final = 2_147_483_647


def reserve_due_runs(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Settle the times that have come and reserve their runs, or wait for the next time."""
    cron, schedule = snapshot.cron, snapshot.schedule
    if cron.suspend or not isinstance(schedule, Schedule):
        return None
    first = schedule.first_after(cron.settled_time)
    if first is None:
        return None
    if fires_at(cron, first) > now.wall:
        return CronJobWait(recheck_at(fires_at(cron, first), now))
    due = due_times(cron, schedule, now.wall)
    if not due.times:
        return CronJobWait(recheck_at(now.wall + 1, now))
    return _settle(snapshot, due)


def _settle(snapshot: CronJobSnapshot, due: DueTimes) -> WriteStatus:
    cron, busy = snapshot.cron, snapshot.busy
    runs, dropped = _runs_to_reserve(snapshot, due, busy=busy)
    new = [run for run in runs if run not in cron.runs]
    reason = _due_reason(snapshot, due, new, busy=busy)
    message = _due_message(snapshot, due, new, reason)
    fields: CronStatusFields = {
        **display_fields(snapshot, due.times[-1]),
        **status_reason(reason, message),
        "settledTime": format_epoch(due.times[-1]),
        "missed": missed_total(cron, len(due.times) - len(new) + dropped),
        **({"lastScheduleTime": format_epoch(new[-1].time)} if new else {}),
        **(reservation_fields(snapshot, runs) if new else {}),
    }
    quiet = reason in {CronReason.SCHEDULED, CronReason.REPLACED}
    event = None if quiet else EventToRecord(reason, message)
    return WriteStatus(
        SCHEDULE, fields, reserves=bool(new), needs_fresh_list=snapshot.exclusive, event=event
    )


def _runs_to_reserve(
    snapshot: CronJobSnapshot, due: DueTimes, *, busy: bool
) -> tuple[Sequence[Run], int]:
    """Return the runs to reserve, in order, and how many reserved earlier are dropped."""
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
    """Return whether a scheduled time caused the run, and not a person's request."""
    return run.trigger is None and not run.backfill


def count_scheduled(runs: Sequence[Run]) -> int:
    """Return how many scheduled times are without a run if these are not created."""
    return sum(map(is_scheduled, runs))


def missed_total(cron: CronJobView, more: int) -> int:
    """Return `status.missed` raised by `more`, at most to the schema's maximum."""
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
    names = [job.name for job in snapshot.unfinished] or [run.name for run in snapshot.pending_runs]
    return names[0] if names else "a run"
