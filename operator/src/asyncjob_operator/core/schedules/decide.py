"""The decision about one cron job: an ordered chain of steps, of which the first effect wins.

The step that creates reserved runs, and drops those that come too late, is defined here as well.
"""

from collections.abc import Sequence
from typing import Final

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.schedules.due_runs import (
    apply_spec_change,
    count_scheduled,
    is_scheduled,
    missed_total,
    reserve_due_runs,
    still_due,
)
from asyncjob_operator.core.schedules.on_demand import reserve_backfill_runs, reserve_triggered_run
from asyncjob_operator.core.schedules.reservation import (
    reservation_fields,
    take_over,
    with_fresh_reservation,
)
from asyncjob_operator.core.schedules.snapshot import (
    CancelJobs,
    CreateRuns,
    CronJobDecision,
    CronJobHold,
    CronJobSnapshot,
    CronJobStep,
    CronJobWait,
    DropRuns,
    EventToRecord,
    StepResult,
    VerifyUnfinished,
    WriteStatus,
)
from asyncjob_operator.core.schedules.status import (
    display_fields,
    prune_history,
    status_reason,
    update_status,
)
from asyncjob_operator.core.schedules.view import CronJobView, Run, format_epoch, runs_to_json

CREATE: Final = "create"
CREATE_BATCH: Final = 50
"""Runs that are created under one reservation before it is checked again."""


def create_reserved_runs(snapshot: CronJobSnapshot, now: Now) -> StepResult:
    """Create reserved runs once they may start; Replace first cancels the run in the way."""
    cron, pending = snapshot.cron, snapshot.pending_runs
    if cron.reserved is None:
        return None
    if not pending:
        return WriteStatus(
            "created", {"reserved": None, **display_fields(snapshot, cron.settled_time)}
        )
    if len(pending) < len(cron.runs):
        fields = {
            **display_fields(snapshot, cron.settled_time),
            **reservation_fields(snapshot, pending),
        }
        return WriteStatus("created", fields, reserves=True)
    kept = _runs_still_due(snapshot, now)
    if len(kept) < len(pending):
        return DropRuns("late", tuple(run for run in pending if run not in kept)[:CREATE_BATCH])
    if snapshot.exclusive:
        return _create_exclusively(snapshot, pending[0], now)
    return with_fresh_reservation(snapshot, now, CreateRuns(CREATE, pending[:CREATE_BATCH]))


def _runs_still_due(snapshot: CronJobSnapshot, now: Now) -> tuple[Run, ...]:
    """Return the reserved runs that would be chosen if they became due now.

    A quota or a webhook may have prevented their creation for hours; they must not all be created
    at once when it permits them. Runs that a person requested stay. Under Replace there is only one
    run, and it waits for as long as the earlier one takes to end.
    """
    cron, pending = snapshot.cron, snapshot.pending_runs
    if cron.concurrency_policy is ConcurrencyPolicy.REPLACE:
        return pending
    chosen = set(still_due(cron, [run.time for run in pending if is_scheduled(run)], now.wall))
    return tuple(run for run in pending if not is_scheduled(run) or run.time in chosen)


def _create_exclusively(snapshot: CronJobSnapshot, run: Run, now: Now) -> StepResult:
    blockers = tuple(job for job in snapshot.unfinished if job.name != run.name)
    if not blockers:
        return with_fresh_reservation(
            snapshot, now, CreateRuns(CREATE, (run,), needs_fresh_list=True)
        )
    alive = tuple(job for job in blockers if not job.cancel_requested)
    if snapshot.cron.concurrency_policy is ConcurrencyPolicy.REPLACE and alive:
        return CancelJobs("replace", alive)
    return (
        None
        if all(job.uid in snapshot.verified_unfinished for job in blockers)
        else VerifyUnfinished(CREATE)
    )


def drop_runs(
    cron: CronJobView, runs: Sequence[Run], reason: CronReason, message: str
) -> WriteStatus:
    """Return the write that removes reserved runs without creating them, with the reason."""
    names = {run.name for run in runs}
    kept = [run for run in cron.runs if run.name not in names]
    held = cron.reserved
    fields = {
        "reserved": {"by": held.by, "runs": runs_to_json(kept)} if held and kept else None,
        "missed": missed_total(cron, count_scheduled(runs)),
        **status_reason(reason, message),
    }
    return WriteStatus("drop", fields, event=EventToRecord(reason, message))


def late_message(runs: Sequence[Run]) -> str:
    """Return the message about reserved runs that could not be created in time."""
    newest = format_epoch(runs[-1].time)
    return f"{len(runs)} times not run, the last {newest}: their jobs could not be created in time"


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
    """Return the one effect due now, or when to evaluate the cron job again if nothing changes."""
    if snapshot.cron.deleting:
        return CronJobDecision()
    requeue_at: float | None = None
    for step in STEPS:
        result = step(snapshot, now)
        if result is None:
            continue
        if isinstance(result, CronJobHold):
            return CronJobDecision(None, result.until)
        if not isinstance(result, CronJobWait):
            return CronJobDecision(result)
        requeue_at = result.until if requeue_at is None else min(requeue_at, result.until)
    return CronJobDecision(None, requeue_at)
