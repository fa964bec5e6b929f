"""A job in a list, and the mark of its phase."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.lifecycle.phases import PHASE_DOCS, Phase
from asyncjob.rest.jobs import JobSummary
from asyncjob_gateway.dashboard.formatting import DisplayTime, display_time, format_duration
from asyncjob_gateway.dashboard.links import Links

_PHASE_STYLES: Final = {
    Phase.PENDING: ("Pending", "pending"),
    Phase.SCHEDULED: ("Scheduled", "scheduled"),
    Phase.QUEUED: ("Queued", "queued"),
    Phase.RUNNING: ("Running", "running"),
    Phase.RETRYING: ("Retrying", "retrying"),
    Phase.SUCCEEDED: ("Succeeded", "succeeded"),
    Phase.DEAD_LETTER: ("Dead letter", "dead"),
    Phase.CANCELLED: ("Cancelled", "cancelled"),
}


@dataclass(frozen=True, slots=True)
class PhaseBadge:
    """A phase as it is shown: a word, the name of a colour, and what it means."""

    word: str
    colour: str
    meaning: str


def phase_badge(phase: Phase) -> PhaseBadge:
    """Return the mark of a phase."""
    word, colour = _PHASE_STYLES[phase]
    return PhaseBadge(word, colour, PHASE_DOCS[phase].replace("`", ""))


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job of a list. `percent` is None where there is no progress worth showing."""

    id: str
    uid: str
    url: str
    type: str
    queue: str
    queue_url: str
    mark: PhaseBadge
    cancelling: bool
    why: str
    reason: str
    percent: int | None
    doing: str
    attempt: int
    tries: str
    priority: int
    created: DisplayTime | None
    updated: DisplayTime | None
    took: str


def job_row(job: JobSummary, links: Links, now: datetime) -> JobRow:
    """Return the job as a list shows it."""
    running = job.phase is Phase.RUNNING
    progress = job.progress
    return JobRow(
        id=job.id,
        uid=job.uid,
        url=links.job(job.id),
        type=job.type,
        queue=job.queue,
        queue_url=links.jobs(queue=job.queue),
        mark=phase_badge(job.phase),
        cancelling=job.cancelling,
        why=status_line(job),
        reason=job.reason or "",
        percent=progress.percent if progress and running else None,
        doing=(progress.message or "") if progress and running else "",
        attempt=job.attempt,
        tries=attempts_text(job),
        priority=job.priority,
        created=display_time(job.created_at, now),
        updated=display_time(job.updated_at, now),
        took="" if job.duration_seconds is None else format_duration(job.duration_seconds),
    )


def status_line(job: JobSummary) -> str:
    """Return in one line why the job is where it is: of a failure its message, else the reason."""
    if job.phase is Phase.SUCCEEDED:
        return ""
    if job.error and job.phase in {Phase.DEAD_LETTER, Phase.RETRYING}:
        return f"{job.error.type}: {job.error.message}"
    return job.message or job.reason or ""


def attempts_text(job: JobSummary) -> str:
    """Return how often it was tried: failures show retries of max retries."""
    if not job.attempt:
        return ""
    if job.max_retries is None or not job.retries:
        return str(job.attempt)
    return f"{job.attempt}, {job.retries} of {job.max_retries} retries"
