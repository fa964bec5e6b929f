"""A job's page: why it is where it is, what happened to it, what may be done about it."""

from dataclasses import dataclass
from datetime import datetime

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Job
from asyncjob_gateway.dashboard.allowed import Allowed
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.facts import Fact, facts, policy
from asyncjob_gateway.dashboard.views.family import Member
from asyncjob_gateway.dashboard.views.offers import Offers, offers
from asyncjob_gateway.dashboard.views.rows import Row, row
from asyncjob_gateway.dashboard.views.segments import WIDTH, Segment, segments
from asyncjob_gateway.dashboard.views.timeline import Happened, meaning, timeline
from asyncjob_gateway.dashboard.words import Moment, moment, pretty


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of JSON, as it is read by people."""

    name: str
    text: str
    was_cut: bool


@dataclass(frozen=True, slots=True)
class JobPage:
    """Everything on the page."""

    row: Row
    job: Job
    offers: Offers
    reason_meaning: str
    why: str
    running_since: Moment | None
    next_attempt: Moment | None
    finished: Moment | None
    facts: list[Fact]
    policy: list[Fact]
    labels: list[Fact]
    timeline: list[Happened]
    segments: list[Segment]
    bar_width: int
    family: list[Member]
    documents: list[Document]
    payload_hidden: bool
    events: str
    here: str


def job_page(
    job: Job, members: list[Member], allowed: Allowed, links: Links, now: datetime
) -> JobPage:
    """Return the view; the job comes without its payload if the reader may not see that."""
    running = job.phase is Phase.RUNNING
    return JobPage(
        row=row(job, links, now),
        job=job,
        offers=offers(job, allowed),
        reason_meaning=meaning(job.reason),
        why=_why(job),
        running_since=moment(job.started_at, now) if running else None,
        next_attempt=moment(job.next_attempt_at, now),
        finished=moment(job.completed_at, now),
        facts=facts(job, links, now),
        policy=policy(job),
        labels=[
            Fact(name, value, links.jobs(label=f"{name}={value}"))
            for name, value in sorted(job.labels.items())
        ],
        timeline=timeline(job, now),
        segments=segments(job, now),
        bar_width=WIDTH,
        family=members,
        documents=_documents(job) if allowed.read_payload else [],
        payload_hidden=not allowed.read_payload,
        events=links.to("/events", {"job": job.id}),
        here=links.job(job.id),
    )


def _why(job: Job) -> str:
    """Return what is to be said of the reason, where the error beside it does not say it."""
    said = job.error.message if job.error else None
    if job.message and job.message != said:
        return job.message
    return meaning(job.reason)


def _documents(job: Job) -> list[Document]:
    parts: list[tuple[str, Json]] = [
        ("Payload", job.payload),
        ("Payload from", _dumped(job.payload_from)),
        ("Request", _dumped(job.request)),
        ("Checkpoint", job.checkpoint),
        ("Result", job.result),
        ("Result, stored elsewhere", _dumped(job.result_ref)),
    ]
    return [Document(name, *pretty(value)) for name, value in parts if value is not None]


def _dumped(model: object) -> Json:
    dump = getattr(model, "model_dump", None)
    value: Json = dump(mode="json", by_alias=True, exclude_none=True) if dump else None
    return value


@dataclass(frozen=True, slots=True)
class Soon:
    """The page of a job that was asked for and is not created yet."""

    id: str
    again: str
