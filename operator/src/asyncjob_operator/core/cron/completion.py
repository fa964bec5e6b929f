"""Creates what is reserved, in order, and takes off the list what there is."""

from typing import Final

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.claim import renewed_or, reserve
from asyncjob_operator.core.cron.decision import Ask, Cancel, Create, Told, Verdict, Write
from asyncjob_operator.core.cron.due import given_up
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.cron.standing import said, shown_of
from asyncjob_operator.core.cron.view import CronView, Run, write_runs
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
    if snapshot.alone:
        return _one_after_another(snapshot, pending[0], now)
    return renewed_or(snapshot, now, Create(NAME, pending[:CHUNK]))


def _one_after_another(snapshot: CronSnapshot, head: Run, now: Moment) -> Verdict:
    blockers = tuple(one for one in snapshot.unfinished if one.name != head.name)
    if not blockers:
        return renewed_or(snapshot, now, Create(NAME, (head,), rests=True))
    alive = tuple(one for one in blockers if not one.cancelling)
    if snapshot.cron.concurrency is ConcurrencyPolicy.REPLACE and alive:
        return Cancel("replace", alive)
    return None if all(one.uid in snapshot.listed for one in blockers) else Ask(NAME)


def dropped(cron: CronView, run: Run, reason: CronReason, why: str) -> Write:
    """Return the write that gives up a reserved run that cannot be created, and says why."""
    rest = [other for other in cron.runs if other.name != run.name]
    by = cron.reserved.by if cron.reserved else ""
    message = f"no job {run.name}: {why}"
    fields = {
        "reserved": {"by": by, "runs": write_runs(rest)} if rest else None,
        "missed": cron.missed + given_up([run]),
        **said(reason, message),
    }
    return Write("drop", fields, told=Told(reason, message))
