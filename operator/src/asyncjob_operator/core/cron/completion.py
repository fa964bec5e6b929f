"""Creates what is reserved, in order, and takes off the list what there is."""

from collections.abc import Sequence
from typing import Final

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.claim import renewed_or, reserve
from asyncjob_operator.core.cron.decision import Ask, Cancel, Create, GiveUp, Told, Verdict, Write
from asyncjob_operator.core.cron.due import given_up, is_scheduled, missed
from asyncjob_operator.core.cron.misfire import chosen_still
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.cron.standing import said, shown_of
from asyncjob_operator.core.cron.view import CronView, Run, stamp, write_runs
from asyncjob_operator.core.moment import Moment

NAME: Final = "create"
CHUNK: Final = 50
"""So many runs are created under one reservation before it is looked at again."""


def complete(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Create reserved runs as soon as they may start; Replace first cancels what is in the way."""
    cron, pending = snapshot.cron, snapshot.pending
    if cron.reserved is None:
        return None
    if not pending:
        return Write("created", {"reserved": None, **shown_of(snapshot, cron.settled)})
    if len(pending) < len(cron.runs):
        fields = {**shown_of(snapshot, cron.settled), **reserve(snapshot, pending)}
        return Write("created", fields, claims=True)
    kept = _still_due(snapshot, now)
    if len(kept) < len(pending):
        return GiveUp("late", tuple(run for run in pending if run not in kept)[:CHUNK])
    if snapshot.alone:
        return _one_after_another(snapshot, pending[0], now)
    return renewed_or(snapshot, now, Create(NAME, pending[:CHUNK]))


def _still_due(snapshot: CronSnapshot, now: Moment) -> tuple[Run, ...]:
    """Return the reserved runs that the schedule would run if it chose among them now.

    A quota or a webhook may have kept them from being created for hours; they must not all come at
    once when it gives way. What a person asked for stays. Under Replace there is but one, and it
    waits for as long as the earlier run takes to end.
    """
    cron, pending = snapshot.cron, snapshot.pending
    if cron.concurrency is ConcurrencyPolicy.REPLACE:
        return pending
    chosen = set(chosen_still(cron, [run.time for run in pending if is_scheduled(run)], now.wall))
    return tuple(run for run in pending if not is_scheduled(run) or run.time in chosen)


def _one_after_another(snapshot: CronSnapshot, head: Run, now: Moment) -> Verdict:
    blockers = tuple(one for one in snapshot.unfinished if one.name != head.name)
    if not blockers:
        return renewed_or(snapshot, now, Create(NAME, (head,), rests=True))
    alive = tuple(one for one in blockers if not one.cancelling)
    if snapshot.cron.concurrency is ConcurrencyPolicy.REPLACE and alive:
        return Cancel("replace", alive)
    return None if all(one.uid in snapshot.confirmed for one in blockers) else Ask(NAME)


def dropped(cron: CronView, runs: Sequence[Run], reason: CronReason, message: str) -> Write:
    """Return the write that gives up reserved runs that are not created, and says why."""
    names = {run.name for run in runs}
    rest = [other for other in cron.runs if other.name not in names]
    by = cron.reserved.by if cron.reserved else ""
    fields = {
        "reserved": {"by": by, "runs": write_runs(rest)} if rest else None,
        "missed": missed(cron, given_up(runs)),
        **said(reason, message),
    }
    return Write("drop", fields, told=Told(reason, message))


def too_late(runs: Sequence[Run]) -> str:
    """Return what is said of reserved runs that could not be created in time."""
    newest = stamp(runs[-1].time)
    return f"{len(runs)} times not run, the last {newest}: their jobs could not be created in time"
