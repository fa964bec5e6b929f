"""`spec.backfill`: the runs of a range of time gone by, oldest first, a few at a time, once.

A cursor in the status says how far it has come. Times that the schedule has yet to settle are not
its business, so that no time is run by both.
"""

from itertools import islice, takewhile
from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.derived_names import run_name
from asyncjob.lifecycle.schedules import CronReason
from asyncjob_operator.core.cron.claim import reserve
from asyncjob_operator.core.cron.decision import Fields, Told, Verdict, Write
from asyncjob_operator.core.cron.schedule import Schedule
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.cron.standing import said
from asyncjob_operator.core.cron.view import BackfillState, BackfillWish, Run, stamp
from asyncjob_operator.core.moment import Moment

NAME: Final = "backfill"


def backfill(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Begin the backfill asked for, or go on with it where there is room."""
    wish, state, plan = snapshot.cron.backfill, snapshot.cron.backfilled, snapshot.plan
    if wish is None or not isinstance(plan, Schedule):
        return None
    if state is None or _range(state) != _range(wish):
        return _begin(snapshot, plan, wish, now)
    if state.completed:
        return None
    return _go_on(snapshot, plan, wish, state)


def _range(of: BackfillWish | BackfillState) -> tuple[int, int]:
    """Return the range in whole seconds: in far years a float does not keep milliseconds."""
    return int(of.start // 1), int(of.end // 1)


def _times(plan: Schedule, after: float, until: float, limit: int) -> list[int]:
    return list(islice(takewhile(lambda time: time <= until, plan.after(after)), limit))


def _begin(snapshot: CronSnapshot, plan: Schedule, wish: BackfillWish, now: Moment) -> Write:
    cron = snapshot.cron
    settled = now.wall if cron.suspend else min(cron.settled, now.wall)
    end = min(wish.end, settled)
    found = len(_times(plan, _before(wish.start), end, wish.limit + 1))
    if found > wish.limit:
        message = f"spec.backfill: the range holds more than {wish.limit} runs (its limit): none"
        told = Told(CronReason.BACKFILL_REFUSED, message)
        fields = {**_stored(wish, completed=True), **said(told.reason, message)}
        return Write(NAME, fields, told=told)
    if not found:
        message = "spec.backfill: no scheduled time lies in the range"
        return Write(
            NAME, {**_stored(wish, completed=True), **said(CronReason.BACKFILLED, message)}
        )
    message = f"backfill of {found} runs"
    fields = {**_stored(wish, total=found), **said(CronReason.BACKFILLING, message)}
    return Write(NAME, fields)


def _before(moment: float) -> float:
    """Return what lies before the moment and after every whole second before it.

    Nothing before 1970 is looked at: going through the days of a thousand years for the few that a
    rare schedule has takes seconds.
    """
    return max(-(-moment // 1) - 1, -1.0)


def _go_on(
    snapshot: CronSnapshot, plan: Schedule, wish: BackfillWish, state: BackfillState
) -> Verdict:
    room = _room(snapshot, wish)
    if room <= 0:
        return None
    start = _before(state.start) if state.through is None else state.through
    left = min(room, state.total - state.created)
    times = _times(plan, start, state.end, left)
    created = state.created + len(times)
    done = not times or created >= state.total
    runs = [Run(run_name(snapshot.cron.name, time), time, backfill=True) for time in times]
    through = times[-1] if times else state.through
    fields: Fields = {
        **_stored(wish, total=state.total, created=created, through=through, completed=done),
        **said(
            CronReason.BACKFILLED if done else CronReason.BACKFILLING,
            f"backfill: {created} of {state.total} runs",
        ),
        **(reserve(snapshot, [*snapshot.pending, *runs]) if runs else {}),
    }
    return Write(NAME, fields, claims=bool(runs), rests=snapshot.alone)


def _room(snapshot: CronSnapshot, wish: BackfillWish) -> int:
    if snapshot.alone:
        return 0 if snapshot.busy else 1
    under_way = sum(one.backfill for one in snapshot.unfinished)
    return wish.max_active - under_way - sum(run.backfill for run in snapshot.pending)


def _stored(
    wish: BackfillWish,
    *,
    total: int = 0,
    created: int = 0,
    through: float | None = None,
    completed: bool = False,
) -> Fields:
    state: dict[str, Json] = {
        "from": stamp(wish.start),
        "to": stamp(wish.end),
        "through": None if through is None else stamp(through),
        "total": total,
        "created": created,
        "completed": completed,
    }
    return {"backfill": state}
