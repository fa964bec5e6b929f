"""A job's page: why it is where it is, what happened to it, what may be done about it."""

from dataclasses import dataclass
from datetime import datetime

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job
from asyncjob_gateway.dashboard.allowed import Permissions
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.facts import Fact, job_facts, policy_facts
from asyncjob_gateway.dashboard.views.family import JobTreeRow
from asyncjob_gateway.dashboard.views.offers import JobActions, available_actions
from asyncjob_gateway.dashboard.views.rows import JobRow, job_row
from asyncjob_gateway.dashboard.views.segments import BAR_WIDTH, PhaseSegment, phase_segments
from asyncjob_gateway.dashboard.views.timeline import TimelineEntry, job_timeline, reason_meaning
from asyncjob_gateway.dashboard.words import DisplayTime, display_time, format_json


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of JSON, as it is read by people."""

    name: str
    text: str
    was_cut: bool


@dataclass(frozen=True, slots=True)
class JobPage:
    """Everything on the page."""

    row: JobRow
    job: Job
    offers: JobActions
    reason_meaning: str
    why: str
    running_since: DisplayTime | None
    next_attempt: DisplayTime | None
    finished: DisplayTime | None
    facts: list[Fact]
    policy: list[Fact]
    labels: list[Fact]
    timeline: list[TimelineEntry]
    segments: list[PhaseSegment]
    bar_width: int
    family: list[JobTreeRow]
    documents: list[Document]
    payload_hidden: bool
    events: str
    here: str


def make_job_page(
    job: Job, members: list[JobTreeRow], allowed: Permissions, links: Links, now: datetime
) -> JobPage:
    """Return the view; the job comes without its payload if the reader may not see that."""
    running = job.phase is Phase.RUNNING
    return JobPage(
        row=job_row(job, links, now),
        job=job,
        offers=available_actions(job, allowed),
        reason_meaning=reason_meaning(job.reason),
        why=_reason_text(job),
        running_since=display_time(job.started_at, now) if running else None,
        next_attempt=display_time(job.next_attempt_at, now),
        finished=display_time(job.completed_at, now),
        facts=job_facts(job, links, now),
        policy=policy_facts(job),
        labels=[
            Fact(name, value, links.jobs(label=f"{name}={value}"))
            for name, value in sorted(job.labels.items())
        ],
        timeline=job_timeline(job, now),
        segments=phase_segments(job, now),
        bar_width=BAR_WIDTH,
        family=members,
        documents=_documents(job) if allowed.read_payload else [],
        payload_hidden=not allowed.read_payload,
        events=links.to("/events", {"job": job.id}),
        here=links.job(job.id),
    )


def _reason_text(job: Job) -> str:
    """Return what is to be said of the reason, where the error beside it does not say it."""
    said = job.error.message if job.error else None
    if job.message and job.message != said:
        return job.message
    return reason_meaning(job.reason)


def _documents(job: Job) -> list[Document]:
    parts: list[tuple[str, Json]] = [
        ("Payload", job.payload),
        ("Payload from", _dump_model(job.payload_from)),
        ("Request", _dump_model(job.request)),
        ("Checkpoint", job.checkpoint),
        ("Result", job.result),
        ("Result, stored elsewhere", _dump_model(job.result_ref)),
    ]
    return [Document(name, *format_json(value)) for name, value in parts if value is not None]


def _dump_model(model: object) -> Json:
    dump = getattr(model, "model_dump", None)
    value: Json = dump(mode="json", by_alias=True, exclude_none=True) if dump else None
    return value


@dataclass(frozen=True, slots=True)
class NotCreatedPage:
    """The page of a job that was asked for and is not created yet."""

    id: str
    again: str
