"""What the page of a job shows.

Its facts, which actions are possible, its timeline, the bar of waiting and running, and why it is
where it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from asyncjob.explanations.texts import Kind, meaning
from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.timestamps import seconds_between, try_parse_timestamp
from asyncjob.lifecycle.waits import WaitKind, shown_name
from asyncjob.models.job_status import Waiting
from asyncjob.rest.jobs import HistoryEvent, Job
from asyncjob_gateway.dashboard.formatting import (
    DisplayTime,
    display_time,
    format_duration,
    format_json,
    plural,
)
from asyncjob_gateway.dashboard.links import Links
from asyncjob_gateway.dashboard.permissions import Permissions
from asyncjob_gateway.dashboard.views.job_records import (
    RecordRow,
    SignalRow,
    record_rows,
    signal_rows,
)
from asyncjob_gateway.dashboard.views.job_tree import JobTreeRow
from asyncjob_gateway.dashboard.views.rows import JobRow, PhaseBadge, job_row, phase_badge
from asyncjob_gateway.dashboard.views.signal_forms import SignalForm, signal_forms


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and a value; `url` where the value leads somewhere, `time` where it is one."""

    name: str
    value: str = ""
    url: str = ""
    time: DisplayTime | None = None


def job_facts(job: Job, links: Links, now: datetime) -> list[Fact]:
    """Return what there is to be known of it."""
    cron = job.cron_job
    parent, origin = job.parent, job.rerun_of
    found = [
        Fact("Type", job.type, links.jobs(type=job.type)),
        Fact("Queue", job.queue, links.jobs(queue=job.queue)),
        Fact("Priority", str(job.priority)),
        Fact("Created", time=display_time(job.created_at, now)),
        Fact("First started", time=display_time(job.first_started_at, now)),
        Fact("Finished", time=display_time(job.completed_at, now)),
        Fact("Took", "" if job.duration_seconds is None else format_duration(job.duration_seconds)),
        Fact("Last report", time=display_time(job.updated_at, now)),
        Fact("Progress", _progress_text(job)),
        *(_wait_fact(one, now) for one in job.waiting),
        Fact("Worker", job.worker or ""),
        Fact("Attempts", attempts_with_parks(job)),
        Fact("Retries", _count_of(job.retries, job.max_retries)),
        Fact("Crashes", str(job.crashes or "")),
        Fact("Given back", str(job.releases or "")),
        Fact("Waits without a slot", str(job.parks or "")),
        Fact("Redrives", str(job.redrives or "")),
        Fact("Reruns", str(job.reruns or "")),
        Fact("Not before", time=display_time(job.not_before, now)),
        Fact("Not after", time=display_time(job.not_after, now)),
        Fact("Deadline", time=display_time(job.deadline_at, now)),
        Fact(
            "Submitted by", parent.name if parent else "", links.job(parent.name) if parent else ""
        ),
        Fact("Runs again", origin.name if origin else "", links.job(origin.name) if origin else ""),
        Fact("Cron job", cron.name if cron else "", links.jobs(cronJob=cron.name) if cron else ""),
        *(Fact("Depends on", one.called, links.dependency(one)) for one in job.depends_on),
        Fact("Idempotency key", job.idempotency_key or ""),
        Fact("Deduplication id", job.deduplication_id or ""),
        Fact("Concurrency key", job.concurrency_key or ""),
        Fact("Trace", job.traceparent or ""),
        Fact("UID", job.uid),
    ]
    return [fact for fact in found if fact.value or fact.time]


def _wait_fact(wait: Waiting, now: datetime) -> Fact:
    """Return one thing that the job is parked for."""
    name = shown_name(wait.kind, wait.key)
    if wait.until is None:
        return Fact("Waits for", name)
    ends = "is over" if wait.kind == WaitKind.SLEEP else "times out"
    return Fact(f"{name} {ends}", time=display_time(wait.until, now))


def policy_facts(job: Job) -> list[Fact]:
    """Return the rules in force for its current or last attempt."""
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
        Fact("Time limit", format_duration(rules.execution_timeout_seconds)),
        Fact("Lease", format_duration(rules.lease_duration_seconds)),
    ]


def _progress_text(job: Job) -> str:
    """Return how far it came; of one that runs, the top of the page says it."""
    if job.progress is None or job.phase is Phase.RUNNING:
        return ""
    message = f", {job.progress.message}" if job.progress.message else ""
    return f"{job.progress.percent} %{message}"


def attempts_with_parks(job: Job) -> str:
    """Return the attempts, and how many of them a wait without a slot has ended: `5 (4 parks)`.

    A handler sees those left out in `job.attempt`.
    """
    return f"{job.attempt} ({plural(job.parks, 'park')})" if job.parks else str(job.attempt)


def _count_of(count: int, most: int | None) -> str:
    return str(count) if most is None else f"{count} of {most}"


@dataclass(frozen=True, slots=True)
class JobActions:
    """What the reader of the page may do to the job now."""

    cancel: bool = False
    rerun: bool = False
    redrive: bool = False
    dismiss: bool = False
    suspend: bool = False
    resume: bool = False
    priority: bool = False
    signal: bool = False

    @property
    def any(self) -> bool:
        """Whether there is anything."""
        return any(getattr(self, name) for name in self.__slots__)


def available_actions(job: Job, allowed: Permissions, *, may_signal: bool = False) -> JobActions:
    """Return what the operator would do something about, and the reader may ask for."""
    dead, ended = job.phase is Phase.DEAD_LETTER, job.phase in FINISHED_PHASES
    signal = may_signal and not ended
    if not allowed.control:
        return JobActions(signal=signal)
    waits = not ended and job.phase is not Phase.RUNNING
    return JobActions(
        cancel=not ended and not job.cancelling,
        rerun=ended,
        redrive=dead and not job.cancelling,
        dismiss=dead and not job.cancelling,
        suspend=waits and not job.suspended,
        resume=waits and job.suspended,
        priority=waits,
        signal=signal,
    )


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
    running = HistoryEvent(time=job.started_at, phase=job.phase, attempt=job.attempt)
    worker = job.worker or ""
    return [
        replace(_timeline_entry(running, now), message=f"attempt {job.attempt} on {worker}"),
        *entries,
    ]


def _timeline_entry(one: HistoryEvent, now: datetime) -> TimelineEntry:
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
    return meaning(Kind.JOB_REASON, reason or "").replace("`", "")


BAR_WIDTH: Final = 1000
_MIN_SEGMENT_WIDTH: Final = 4


@dataclass(frozen=True, slots=True)
class PhaseSegment:
    """A part of the bar: `x` and `width` of `WIDTH`, and what it stands for in words."""

    mark: PhaseBadge
    words: str
    x: int
    width: int


_PhaseInterval = tuple[Phase, datetime, datetime]


def phase_segments(job: Job, now: datetime) -> list[PhaseSegment]:
    """Return the parts of the job's life that history tells of, widths true to their lengths."""
    parts = [part for part in _phase_intervals(job, now) if part[2] > part[1]]
    whole = sum((end - start).total_seconds() for _, start, end in parts)
    return list(_lay_out(parts, whole)) if whole > 0 else []


def _phase_intervals(job: Job, now: datetime) -> Iterator[_PhaseInterval]:
    """Yield phase, start and end; claims are not in the history but for the start they leave."""
    known = [(at, one) for one in job.history if (at := try_parse_timestamp(one.time))]
    if not known:
        return
    at, phase = known[0][0], Phase.QUEUED
    for time, one in known[1:]:
        started = try_parse_timestamp(one.start_time) if one.start_time else None
        if started and at <= started <= time:
            yield phase, at, started
            yield Phase.RUNNING, started, time
        else:
            yield phase, at, time
        at, phase = time, Phase(one.phase)
    if job.phase in FINISHED_PHASES:
        return
    if job.phase is Phase.RUNNING and job.started_at:
        started = max(at, try_parse_timestamp(job.started_at) or at)
        yield phase, at, started
        at = started
    yield job.phase, at, now


def _lay_out(parts: Sequence[_PhaseInterval], whole: float) -> Iterator[PhaseSegment]:
    x = 0.0
    for phase, start, end in parts:
        seconds = (end - start).total_seconds()
        width = BAR_WIDTH * seconds / whole
        shown = phase_badge(phase)
        words = f"{shown.word} for {format_duration(seconds)}"
        yield PhaseSegment(
            shown, words, round(x), max(_MIN_SEGMENT_WIDTH, round(x + width) - round(x))
        )
        x += width


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
    records: list[RecordRow]
    signals: list[SignalRow]
    wanted: list[SignalForm]
    segments: list[PhaseSegment]
    bar_width: int
    family: list[JobTreeRow]
    documents: list[Document]
    payload_hidden: bool
    events: str
    here: str


def make_job_page(
    job: Job,
    members: list[JobTreeRow],
    allowed: Permissions,
    links: Links,
    now: datetime,
    *,
    may_signal: bool = False,
) -> JobPage:
    """Return the view; the job comes without its payload if the reader may not see that.

    `may_signal` is about this job: the right may be given for single ones.
    """
    running = job.phase is Phase.RUNNING
    return JobPage(
        row=job_row(job, links, now),
        job=job,
        offers=available_actions(job, allowed, may_signal=may_signal),
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
        records=record_rows(job, now),
        signals=signal_rows(job, now, with_payloads=allowed.read_payload),
        wanted=signal_forms(job),
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
    error_message = job.error.message if job.error else None
    if job.message and job.message != error_message:
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
