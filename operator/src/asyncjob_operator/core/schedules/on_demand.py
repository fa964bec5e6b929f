"""Runs that a person requests: `spec.trigger`, one run now, and `spec.backfill`, a past range.

A derived name ensures that a trigger happens once. A backfill runs each time of its range once,
oldest first, a few at a time. A cursor in the status records its progress. Times that the cron job
has yet to settle are left out, so that no time is run by both.
"""

from itertools import islice, takewhile
from math import ceil, floor
from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.derived_jobs import run_name, trigger_name
from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.calendar import Schedule
from asyncjob_operator.core.schedules.due_runs import blocking_run, count_scheduled, missed_total
from asyncjob_operator.core.schedules.reservation import MAX_RESERVED_RUNS, reservation_fields
from asyncjob_operator.core.schedules.snapshot import (
    CronJobSnapshot,
    CronStatusFields,
    EventToRecord,
    StepResult,
    WriteStatus,
)
from asyncjob_operator.core.schedules.status import display_fields, status_reason
from asyncjob_operator.core.schedules.view import BackfillRequest, BackfillState, Run, format_epoch

TRIGGER: Final = "trigger"


def reserve_triggered_run(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Reserve the triggered run: one, however far the number was raised."""
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
    event = EventToRecord(CronReason.TRIGGER_REFUSED, message)
    return WriteStatus(TRIGGER, fields, needs_fresh_list=True, event=event)


BACKFILL: Final = "backfill"


def reserve_backfill_runs(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Begin the requested backfill, or continue it as far as `maxActive` allows."""
    request, state = snapshot.cron.backfill, snapshot.cron.backfill_state
    schedule = snapshot.schedule
    if request is None or not isinstance(schedule, Schedule):
        return None
    if state is None or _range(state) != _range(request):
        return _begin_backfill(snapshot, schedule, request, now)
    if state.completed:
        return None
    return _continue_backfill(snapshot, schedule, request, state)


def _range(backfill: BackfillRequest | BackfillState) -> tuple[int, int]:
    """Return the range in whole seconds: in far years a float does not keep milliseconds."""
    return floor(backfill.start), floor(backfill.end)


def _times_between(schedule: Schedule, after: float, until: float, limit: int) -> list[int]:
    return list(islice(takewhile(lambda time: time <= until, schedule.times_after(after)), limit))


def _begin_backfill(
    snapshot: CronJobSnapshot, schedule: Schedule, request: BackfillRequest, now: Now
) -> WriteStatus:
    cron = snapshot.cron
    settled = now.wall if cron.suspend else min(cron.settled_time, now.wall)
    end = min(request.end, settled)
    found = len(_times_between(schedule, _just_before(request.start), end, request.limit + 1))
    if found > request.limit:
        message = f"spec.backfill: the range holds more than {request.limit} runs (its limit): none"
        event = EventToRecord(CronReason.BACKFILL_REFUSED, message)
        fields = {
            **_backfill_fields(request, completed=True),
            **status_reason(event.reason, message),
        }
        return WriteStatus(BACKFILL, fields, event=event)
    if not found:
        message = "spec.backfill: no scheduled time lies in the range"
        return WriteStatus(
            BACKFILL,
            {
                **_backfill_fields(request, completed=True),
                **status_reason(CronReason.BACKFILLED, message),
            },
        )
    message = f"backfill of {found} runs"
    fields = {
        **_backfill_fields(request, total=found),
        **status_reason(CronReason.BACKFILLING, message),
    }
    return WriteStatus(BACKFILL, fields)


def _just_before(time: float) -> float:
    """Return the last whole second before `time`; times before 1970 are left out.

    Going through the days of a thousand years for the few times of a rare schedule takes seconds.
    """
    return max(ceil(time) - 1.0, -1.0)


def _continue_backfill(
    snapshot: CronJobSnapshot, schedule: Schedule, request: BackfillRequest, state: BackfillState
) -> StepResult:
    free = _free_runs(snapshot, request)
    if free <= 0:
        return None
    start = _just_before(state.start) if state.through is None else state.through
    limit = min(free, state.total - state.created)
    times = _times_between(schedule, start, state.end, limit)
    created = state.created + len(times)
    done = not times or created >= state.total
    runs = [Run(run_name(snapshot.cron.name, time), time, backfill=True) for time in times]
    through = times[-1] if times else state.through
    fields: CronStatusFields = {
        **_backfill_fields(
            request, total=state.total, created=created, through=through, completed=done
        ),
        **status_reason(
            CronReason.BACKFILLED if done else CronReason.BACKFILLING,
            f"backfill: {created} of {state.total} runs",
        ),
        **(reservation_fields(snapshot, [*snapshot.pending_runs, *runs]) if runs else {}),
    }
    return WriteStatus(BACKFILL, fields, reserves=bool(runs), needs_fresh_list=snapshot.exclusive)


def _free_runs(snapshot: CronJobSnapshot, request: BackfillRequest) -> int:
    if snapshot.exclusive:
        return 0 if snapshot.busy else 1
    under_way = sum(job.backfill for job in snapshot.unfinished)
    return request.max_active - under_way - sum(run.backfill for run in snapshot.pending_runs)


def _backfill_fields(
    request: BackfillRequest,
    *,
    total: int = 0,
    created: int = 0,
    through: float | None = None,
    completed: bool = False,
) -> CronStatusFields:
    state: dict[str, Json] = {
        "from": format_epoch(request.start),
        "to": format_epoch(request.end),
        "through": None if through is None else format_epoch(through),
        "total": total,
        "created": created,
        "completed": completed,
    }
    return {"backfill": state}
