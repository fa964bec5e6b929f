"""Jobs as rows of a table, and why each is where it is in a few words. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import precise_duration, time_since
from asyncjob.cli.looks import phase_cell
from asyncjob.cli.tables import NAMESPACE_HEADING, Cell, Row, Table, prepend_column, row
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import JobSummary

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
