"""Jobs and their history as tables.

The colour of each phase, the columns, and a short text that says why a job is in its phase. Pure.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import parse_time, precise_duration, time_since
from asyncjob.cli.output.tables import NAMESPACE_HEADING, Cell, Row, Table, prepend_column, row
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.waits import WaitKind, shown_key
from asyncjob.rest.job_records import StepInfo, WaitInfo
from asyncjob.rest.jobs import HistoryEvent, JobSummary

PHASE_COLOURS: Final[dict[Phase, str]] = {
    Phase.PENDING: "yellow",
    Phase.SCHEDULED: "cyan",
    Phase.QUEUED: "blue",
    Phase.RUNNING: "magenta",
    Phase.RETRYING: "yellow",
    Phase.SUCCEEDED: "green",
    Phase.DEAD_LETTER: "red",
    Phase.CANCELLED: "dim",
}


PHASE_NAMES: Final = frozenset(phase.value for phase in Phase)


def phase_cell(phase: Phase, *, cancelling: bool = False) -> Cell:
    """Return the phase in its colour; one that is being cancelled says so."""
    text = f"{phase.value}, cancelling" if cancelling else phase.value
    return Cell(text, PHASE_COLOURS[phase])


def phase_colour(name: str) -> str:
    """Return the colour of a phase by its name; none for other words."""
    return PHASE_COLOURS[Phase(name)] if name in PHASE_NAMES else ""


JOB_HEADINGS: Final = ("NAME", "PHASE", "TYPE", "QUEUE", "ATTEMPT", "PROGRESS", "AGE", "WHY")
WIDE_JOB_HEADINGS: Final = (
    *("NAME", "PHASE", "TYPE", "QUEUE", "PRIORITY", "ATTEMPT", "RETRIES", "PROGRESS", "WORKER"),
    *("STARTED", "DURATION", "AGE", "REASON", "WHY"),
)


def job_table(
    jobs: Sequence[JobSummary],
    now: datetime,
    *,
    wide: bool = False,
    everywhere: bool | None = False,
    min_widths: Sequence[int] = (),
) -> Table:
    """Return the table of a list of jobs; `everywhere`: of several namespaces."""
    make = _wide_job_row if wide else _job_row
    table = Table(
        WIDE_JOB_HEADINGS if wide else JOB_HEADINGS, [make(job, now) for job in jobs], min_widths
    )
    return (
        prepend_column(NAMESPACE_HEADING, (job.namespace for job in jobs), table)
        if everywhere
        else table
    )


def status_detail(job: JobSummary) -> str:
    """Return what a reader wants to know next: what it waits for, does, or died of."""
    if job.phase in {Phase.DEAD_LETTER, Phase.RETRYING} and job.error:
        return _error_text(job)
    if job.phase is Phase.RUNNING:
        return (job.progress and job.progress.message) or ""
    if job.phase is Phase.SUCCEEDED:
        return ""
    return job.message or job.reason or ""


def _error_text(job: JobSummary) -> str:
    assert job.error
    text = f"{job.error.type}: {job.error.message}" if job.error.message else job.error.type
    return f"{job.reason}: {text}" if job.reason and job.phase is Phase.DEAD_LETTER else text


def progress_percent(job: JobSummary) -> str:
    """Return the progress, `40%`."""
    known = job.progress and job.progress.percent is not None
    return f"{job.progress.percent}%" if job.progress and known else ""


def retries_used(job: JobSummary) -> str:
    """Return the retries used up, of those there are: `2/5`."""
    return str(job.retries) if job.max_retries is None else f"{job.retries}/{job.max_retries}"


def _job_row(job: JobSummary, now: datetime) -> Row:
    return row(
        Cell(job.id, "bold"),
        phase_cell(job.phase, cancelling=job.cancelling),
        job.type,
        job.queue,
        str(job.attempt),
        progress_percent(job),
        time_since(job.created_at, now),
        Cell(status_detail(job), "dim"),
    )


def _wide_job_row(job: JobSummary, now: datetime) -> Row:
    taken = "" if job.duration_seconds is None else precise_duration(job.duration_seconds)
    return row(
        Cell(job.id, "bold"),
        phase_cell(job.phase, cancelling=job.cancelling),
        job.type,
        job.queue,
        str(job.priority),
        str(job.attempt),
        retries_used(job),
        progress_percent(job),
        job.worker or "",
        time_since(job.started_at, now),
        taken,
        time_since(job.created_at, now),
        job.reason or "",
        Cell(status_detail(job), "dim"),
    )


HISTORY_HEADINGS: Final = ("TIME", "PHASE", "ATTEMPT", "TOOK", "WORKER", "WHY")


def history_table(history: Sequence[HistoryEvent]) -> Table:
    """Return the table of what happened, oldest first."""
    days = {one.time[:10] for one in history}
    return Table(HISTORY_HEADINGS, [_history_row(one, with_date=len(days) > 1) for one in history])


def _history_row(one: HistoryEvent, *, with_date: bool) -> Row:
    return row(
        format_time(one.time, with_date=with_date),
        Cell(one.phase, phase_colour(one.phase)),
        str(one.attempt or ""),
        attempt_duration(one),
        Cell(pod_name(one.worker or ""), "dim"),
        reason_text(one),
    )


STEP_HEADINGS: Final = ("STEP", "DONE", "ATTEMPT", "TOOK", "BYTES")


def steps_table(steps: Sequence[StepInfo]) -> Table:
    """Return the table of the steps that are done, oldest first."""
    days = {(one.completed_at or "")[:10] for one in steps}
    return Table(STEP_HEADINGS, [_step_row(one, with_date=len(days) > 1) for one in steps])


def _step_row(one: StepInfo, *, with_date: bool) -> Row:
    start, end = parse_time(one.started_at), parse_time(one.completed_at)
    return row(
        one.key,
        format_time(one.completed_at or "", with_date=with_date),
        str(one.attempt or ""),
        precise_duration((end - start).total_seconds()) if start and end else "",
        f"{one.size_bytes}, offloaded" if one.result_ref else str(one.size_bytes),
    )


WAIT_HEADINGS: Final = ("WAIT", "KIND", "UNTIL", "OVER")


def waits_table(waits: Sequence[WaitInfo], signals: Collection[str]) -> Table:
    """Return the table of the waits whose ends are kept, by their ends; `signals` have come."""
    return Table(WAIT_HEADINGS, [_wait_row(one, signals) for one in waits])


def _wait_row(one: WaitInfo, signals: Collection[str]) -> Row:
    key = shown_key(one.key) if one.kind == WaitKind.CHILDREN else one.key
    has_come = one.kind == WaitKind.SIGNAL and one.key in signals
    return row(key, one.kind, format_time(one.until), "yes" if one.over or has_come else "")


def pod_name(worker: str) -> str:
    """Return the pod of a worker, whose identity has the start of its process after it."""
    return worker.partition("/")[0]


def format_time(time: str, *, with_date: bool = True) -> str:
    """Return a time in UTC without what nobody reads: `2026-11-21 20:04:16`."""
    then = parse_time(time)
    form = "%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S"
    return then.strftime(form) if then else time


def attempt_duration(one: HistoryEvent) -> str:
    """Return how long the attempt that ended here took."""
    start, end = parse_time(one.start_time), parse_time(one.time)
    return precise_duration((end - start).total_seconds()) if start and end else ""


def reason_text(one: HistoryEvent) -> str:
    """Return the reason and its words, once each."""
    return ": ".join(filter(None, (one.reason, one.message)))
