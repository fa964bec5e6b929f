"""Times that have come: settles them, and reserves a run for each that is to have one."""

from collections.abc import Sequence
from typing import Final

from asyncjob.lifecycle.derived_names import run_name
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.claim import MAX_RUNS, reserve
from asyncjob_operator.core.cron.decision import Fields, Told, Verdict, Wait, Write
from asyncjob_operator.core.cron.misfire import Choice, choose, fires_at
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.snapshot import CronSnapshot, look_at
from asyncjob_operator.core.cron.standing import said, shown_of
from asyncjob_operator.core.cron.view import CronView, Run, stamp
from asyncjob_operator.core.moment import Moment

NAME: Final = "schedule"
MAX_MISSED: Final = 2_147_483_647


def due(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Settle the times that have come, or wait for the next."""
    cron, plan = snapshot.cron, snapshot.plan
    if cron.suspend or not isinstance(plan, Schedule):
        return None
    first = plan.first_after(cron.settled)
    if first is None:
        return None
    if fires_at(cron, first) > now.wall:
        return Wait(look_at(fires_at(cron, first), now))
    choice = choose(cron, plan, now.wall)
    if not choice.times:
        return Wait(look_at(now.wall + 1, now))
    return _settle(snapshot, choice)


def _settle(snapshot: CronSnapshot, choice: Choice) -> Write:
    cron, busy = snapshot.cron, snapshot.busy
    runs, lost = _queued(snapshot, choice, busy=busy)
    new = [run for run in runs if run not in cron.runs]
    reason = _reason(snapshot, choice, new, busy=busy)
    message = _message(snapshot, choice, new, reason)
    fields: Fields = {
        **shown_of(snapshot, choice.times[-1]),
        **said(reason, message),
        "settledTime": stamp(choice.times[-1]),
        "missed": missed(cron, len(choice.times) - len(new) + lost),
        **({"lastScheduleTime": stamp(new[-1].time)} if new else {}),
        **(reserve(snapshot, runs) if new else {}),
    }
    quiet = reason in {CronReason.SCHEDULED, CronReason.REPLACED}
    told = None if quiet else Told(reason, message)
    return Write(NAME, fields, claims=bool(new), rests=snapshot.alone, told=told)


def _queued(snapshot: CronSnapshot, choice: Choice, *, busy: bool) -> tuple[Sequence[Run], int]:
    """Return the runs to reserve, in order, and how many reserved before are given up."""
    pending = snapshot.pending
    new = [Run(run_name(snapshot.cron.name, time), time) for time in choice.chosen]
    match snapshot.cron.concurrency:
        case ConcurrencyPolicy.FORBID:
            return (pending, 0) if busy else (new, 0)
        case ConcurrencyPolicy.REPLACE:
            return (new[-1:], given_up(pending)) if new else (pending, 0)
        case ConcurrencyPolicy.ALLOW:
            runs = [*pending, *new]
            return runs[-MAX_RUNS:], max(len(runs) - MAX_RUNS, 0)


def is_scheduled(run: Run) -> bool:
    """Return whether its time asked for the run, and not a person."""
    return run.trigger is None and not run.backfill


def given_up(runs: Sequence[Run]) -> int:
    """Return how many scheduled times stay without a run if these are not created."""
    return sum(map(is_scheduled, runs))


def missed(cron: CronView, more: int) -> int:
    """Return `status.missed` with so many more, as far as the schema lets it grow."""
    return min(cron.missed + more, MAX_MISSED)


def _reason(
    snapshot: CronSnapshot, choice: Choice, new: Sequence[Run], *, busy: bool
) -> CronReason:
    if not new:
        forbids = snapshot.cron.concurrency is ConcurrencyPolicy.FORBID and busy
        return CronReason.LEFT_OUT if forbids else CronReason.SKIPPED
    if choice.late:
        return CronReason.MISFIRED
    replaces = snapshot.cron.concurrency is ConcurrencyPolicy.REPLACE and busy
    return CronReason.REPLACED if replaces else CronReason.SCHEDULED


def _message(snapshot: CronSnapshot, choice: Choice, new: Sequence[Run], reason: CronReason) -> str:
    newest = stamp(choice.times[-1])
    match reason:
        case CronReason.LEFT_OUT:
            return f"no run for {newest}: {in_the_way(snapshot)} is unfinished"
        case CronReason.SKIPPED:
            return f"{choice.late} times missed, the last {newest}; Skip leaves them out"
        case CronReason.MISFIRED:
            policy = snapshot.cron.misfire.value
            return f"{choice.late} times missed, the last {newest}; {policy}: {len(new)} to run"
        case CronReason.REPLACED:
            return f"run for {newest} in place of {in_the_way(snapshot)}"
        case _:
            return f"run for {newest}"


def in_the_way(snapshot: CronSnapshot) -> str:
    """Return the name of a run that is unfinished or about to be created."""
    names = [one.name for one in snapshot.unfinished] or [run.name for run in snapshot.pending]
    return names[0] if names else "a run"
