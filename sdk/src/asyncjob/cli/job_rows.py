"""Jobs as rows of a table, and why each is where it is in a few words. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import exactly, since
from asyncjob.cli.looks import phase_cell
from asyncjob.cli.tables import NAMESPACE, Cell, Row, Table, led_by, row
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import JobSummary

HEAD: Final = ("NAME", "PHASE", "TYPE", "QUEUE", "ATTEMPT", "PROGRESS", "AGE", "WHY")
WIDE: Final = (
    *("NAME", "PHASE", "TYPE", "QUEUE", "PRIORITY", "ATTEMPT", "RETRIES", "PROGRESS", "WORKER"),
    *("STARTED", "DURATION", "AGE", "REASON", "WHY"),
)


def job_table(
    jobs: Sequence[JobSummary],
    now: datetime,
    *,
    wide: bool = False,
    everywhere: bool | None = False,
    least: Sequence[int] = (),
) -> Table:
    """Return the table of a list of jobs; `everywhere`: of several namespaces."""
    make = _wide if wide else _short
    table = Table(WIDE if wide else HEAD, [make(job, now) for job in jobs], least)
    return led_by(NAMESPACE, (job.namespace for job in jobs), table) if everywhere else table


def why(job: JobSummary) -> str:
    """Return what a reader wants to know next: what it waits for, does, or died of."""
    if job.phase in {Phase.DEAD_LETTER, Phase.RETRYING} and job.error:
        return _failure(job)
    if job.phase is Phase.RUNNING:
        return (job.progress and job.progress.message) or ""
    if job.phase is Phase.SUCCEEDED:
        return ""
    return job.message or job.reason or ""


def _failure(job: JobSummary) -> str:
    assert job.error
    text = f"{job.error.type}: {job.error.message}" if job.error.message else job.error.type
    return f"{job.reason}: {text}" if job.reason and job.phase is Phase.DEAD_LETTER else text


def percent(job: JobSummary) -> str:
    """Return the progress, `40%`."""
    known = job.progress and job.progress.percent is not None
    return f"{job.progress.percent}%" if job.progress and known else ""


def retries(job: JobSummary) -> str:
    """Return the retries used up, of those there are: `2/5`."""
    return str(job.retries) if job.max_retries is None else f"{job.retries}/{job.max_retries}"


def _short(job: JobSummary, now: datetime) -> Row:
    return row(
        Cell(job.id, "bold"),
        phase_cell(job.phase, cancelling=job.cancelling),
        job.type,
        job.queue,
        str(job.attempt),
        percent(job),
        since(job.created_at, now),
        Cell(why(job), "dim"),
    )


def _wide(job: JobSummary, now: datetime) -> Row:
    taken = "" if job.duration_seconds is None else exactly(job.duration_seconds)
    return row(
        Cell(job.id, "bold"),
        phase_cell(job.phase, cancelling=job.cancelling),
        job.type,
        job.queue,
        str(job.priority),
        str(job.attempt),
        retries(job),
        percent(job),
        job.worker or "",
        since(job.started_at, now),
        taken,
        since(job.created_at, now),
        job.reason or "",
        Cell(why(job), "dim"),
    )
