"""A job's page: why it is where it is, what happened to it, what may be done about it."""

from dataclasses import dataclass, replace
from datetime import datetime

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import FINISHED, REASON_DOCS, Phase, Reason
from asyncjob.lifecycle.timestamps import from_text
from asyncjob.rest.job import Happening, Job
from asyncjob_gateway.dashboard.allowed import Allowed
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.views.family import Member
from asyncjob_gateway.dashboard.views.rows import Row, mark, row
from asyncjob_gateway.dashboard.views.segments import WIDTH, Segment, segments
from asyncjob_gateway.dashboard.words import Moment, moment, pretty, span


@dataclass(frozen=True, slots=True)
class Happened:
    """An entry of the timeline."""

    word: str
    colour: str
    at: Moment | None
    attempt: int
    reason: str
    meaning: str
    message: str
    worker: str
    ran: str


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of JSON, as it is read by people."""

    name: str
    text: str
    was_cut: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and a value; `url` where the value leads somewhere, `time` where it is one."""

    name: str
    value: str = ""
    url: str = ""
    time: Moment | None = None


@dataclass(frozen=True, slots=True)
class Offers:
    """What may be done to the job now, by whoever reads the page."""

    cancel: bool = False
    rerun: bool = False
    redrive: bool = False
    dismiss: bool = False
    suspend: bool = False
    resume: bool = False
    priority: bool = False

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        return any(getattr(self, name) for name in self.__slots__)


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
        reason_meaning=_meaning(job.reason),
        why=_why(job),
        running_since=moment(job.started_at, now) if running else None,
        next_attempt=moment(job.next_attempt_at, now),
        finished=moment(job.completed_at, now),
        facts=_facts(job, links, now),
        policy=_policy(job),
        labels=[
            Fact(name, value, links.jobs(label=f"{name}={value}"))
            for name, value in sorted(job.labels.items())
        ],
        timeline=_timeline(job, now),
        segments=segments(job, now),
        bar_width=WIDTH,
        family=members,
        documents=_documents(job) if allowed.read_payload else [],
        payload_hidden=not allowed.read_payload,
        events=links.to("/events", {"job": job.id}),
        here=links.job(job.id),
    )


def offers(job: Job, allowed: Allowed) -> Offers:
    """Return what the operator would do something about, and the reader may ask for."""
    if not allowed.control:
        return Offers()
    dead, ended = job.phase is Phase.DEAD_LETTER, job.phase in FINISHED
    waits = not ended and job.phase is not Phase.RUNNING
    return Offers(
        cancel=not ended and not job.cancelling,
        rerun=ended,
        redrive=dead and not job.cancelling,
        dismiss=dead and not job.cancelling,
        suspend=waits and not job.suspended,
        resume=waits and job.suspended,
        priority=waits,
    )


def _meaning(reason: str | None) -> str:
    known = reason in set(Reason)
    return REASON_DOCS[Reason(reason)].replace("`", "") if reason and known else ""


def _why(job: Job) -> str:
    """Return what is to be said of the reason, where the error beside it does not say it."""
    said = job.error.message if job.error else None
    if job.message and job.message != said:
        return job.message
    return _meaning(job.reason)


def _timeline(job: Job, now: datetime) -> list[Happened]:
    """Return what happened, newest first; a claim is told of while it lasts."""
    entries = [_happened(one, now) for one in reversed(job.history)]
    if job.phase is not Phase.RUNNING or not job.started_at:
        return entries
    running = Happening(time=job.started_at, phase=job.phase, attempt=job.attempt)
    worker = job.worker or ""
    return [
        replace(_happened(running, now), message=f"attempt {job.attempt} on {worker}"),
        *entries,
    ]


def _happened(one: Happening, now: datetime) -> Happened:
    known = one.phase in set(Phase)
    shown = mark(Phase(one.phase)) if known else None
    ran = ""
    if one.start_time:
        ran = span(max(0.0, (from_text(one.time) - from_text(one.start_time)).total_seconds()))
    return Happened(
        word=shown.word if shown else one.phase,
        colour=shown.colour if shown else "created",
        at=moment(one.time, now),
        attempt=one.attempt,
        reason=one.reason or "",
        meaning=_meaning(one.reason),
        message=one.message or "",
        worker=one.worker or "",
        ran=ran,
    )


def _facts(job: Job, links: Links, now: datetime) -> list[Fact]:
    cron = job.cron_job
    parent, origin = job.parent, job.rerun_of
    found = [
        Fact("Type", job.type, links.jobs(type=job.type)),
        Fact("Queue", job.queue, links.jobs(queue=job.queue)),
        Fact("Priority", str(job.priority)),
        Fact("Created", time=moment(job.created_at, now)),
        Fact("First started", time=moment(job.first_started_at, now)),
        Fact("Finished", time=moment(job.completed_at, now)),
        Fact("Took", "" if job.duration_seconds is None else span(job.duration_seconds)),
        Fact("Last report", time=moment(job.updated_at, now)),
        Fact("Worker", job.worker or ""),
        Fact("Attempts", str(job.attempt)),
        Fact("Retries", _of(job.retries, job.max_retries)),
        Fact("Crashes", str(job.crashes or "")),
        Fact("Given back", str(job.releases or "")),
        Fact("Redrives", str(job.redrives or "")),
        Fact("Reruns", str(job.reruns or "")),
        Fact("Not before", time=moment(job.not_before, now)),
        Fact("Not after", time=moment(job.not_after, now)),
        Fact(
            "Submitted by", parent.name if parent else "", links.job(parent.name) if parent else ""
        ),
        Fact("Runs again", origin.name if origin else "", links.job(origin.name) if origin else ""),
        Fact("Cron job", cron.name if cron else "", links.jobs(cronJob=cron.name) if cron else ""),
        *(Fact("Depends on", one.name, links.job(one.name)) for one in job.depends_on),
        Fact("Idempotency key", job.idempotency_key or ""),
        Fact("Deduplication id", job.deduplication_id or ""),
        Fact("Concurrency key", job.concurrency_key or ""),
        Fact("Trace", job.traceparent or ""),
        Fact("UID", job.uid),
    ]
    return [fact for fact in found if fact.value or fact.time]


def _of(count: int, most: int | None) -> str:
    return str(count) if most is None else f"{count} of {most}"


def _policy(job: Job) -> list[Fact]:
    rules = job.effective
    if rules is None:
        return []
    delays = f"{rules.initial_delay_seconds:g} s to {rules.max_delay_seconds:g} s"
    return [
        Fact("Retries at most", str(rules.max_retries)),
        Fact("Backoff", f"{rules.backoff}, {delays}, jitter {rules.jitter:g}"),
        Fact("Retried", ", ".join(rules.retry_on) or "all categories"),
        Fact("Never retried", ", ".join(rules.no_retry_on) or "none"),
        Fact("Crashes survived", str(rules.max_crashes)),
        Fact("Time limit", span(rules.execution_timeout_seconds)),
        Fact("Lease", span(rules.lease_duration_seconds)),
    ]


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
