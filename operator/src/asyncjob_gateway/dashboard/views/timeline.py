"""What happened to a job, newest first."""

from dataclasses import dataclass, replace
from datetime import datetime

from asyncjob.lifecycle.phases import REASON_DOCS, Phase, Reason
from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.rest.job import Happening, Job
from asyncjob_gateway.dashboard.views.rows import phase_badge
from asyncjob_gateway.dashboard.words import DisplayTime, display_time, format_duration


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An entry of the timeline."""

    word: str
    colour: str
    at: DisplayTime | None
    attempt: int
    reason: str
    meaning: str
    message: str
    worker: str
    ran: str


def job_timeline(job: Job, now: datetime) -> list[TimelineEntry]:
    """Return what happened, newest first; a claim is told of while it lasts."""
    entries = [_timeline_entry(one, now) for one in reversed(job.history)]
    if job.phase is not Phase.RUNNING or not job.started_at:
        return entries
    running = Happening(time=job.started_at, phase=job.phase, attempt=job.attempt)
    worker = job.worker or ""
    return [
        replace(_timeline_entry(running, now), message=f"attempt {job.attempt} on {worker}"),
        *entries,
    ]


def _timeline_entry(one: Happening, now: datetime) -> TimelineEntry:
    known = one.phase in set(Phase)
    shown = phase_badge(Phase(one.phase)) if known else None
    ran = ""
    took = seconds_between(one.start_time, one.time) if one.start_time else None
    if took is not None:
        ran = format_duration(max(0.0, took))
    return TimelineEntry(
        word=shown.word if shown else one.phase,
        colour=shown.colour if shown else "created",
        at=display_time(one.time, now),
        attempt=one.attempt,
        reason=one.reason or "",
        meaning=reason_meaning(one.reason),
        message=one.message or "",
        worker=one.worker or "",
        ran=ran,
    )


def reason_meaning(reason: str | None) -> str:
    """Return what a reason stands for."""
    known = reason in set(Reason)
    return REASON_DOCS[Reason(reason)].replace("`", "") if reason and known else ""
