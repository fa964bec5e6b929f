"""The detail view of one job or one cron job.

Its state, its fields, its history, and the commands that make sense next. Pure.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import precise_duration, time_since
from asyncjob.cli.output.job_table import (
    PHASE_COLOURS,
    format_time,
    history_table,
    pod_name,
    progress_percent,
    retries_used,
    steps_table,
    waits_table,
)
from asyncjob.cli.output.resource_tables import time_until
from asyncjob.cli.output.tables import one_line, render_lines, styled, truncate
from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.waits import WaitKind, shown_name
from asyncjob.models.job import Dependency
from asyncjob.models.job_status import Waiting
from asyncjob.rest.job_records import SignalInfo
from asyncjob.rest.jobs import HistoryEvent, Job, Link
from asyncjob.rest.resources import CronJobInfo

MAX_PAYLOAD_CHARACTERS: Final = 400
"""Characters of a payload or result that are shown; `-o json` has all of it."""
LABEL_WIDTH: Final = 12


@dataclass(frozen=True, slots=True)
class RenderContext:
    """How to draw."""

    now: datetime
    program: str = "asyncjob"
    colour: bool = False
    width: int | None = None

    def paint(self, text: str, colour: str) -> str:
        """Return the text in a colour, if there are any."""
        return styled(text, colour) if self.colour else text


def job_detail(job: Job, context: RenderContext) -> Iterator[str]:
    """Return the job, line by line."""
    yield _headline(job, context)
    yield from (f"  {line}" for line in _status_lines(job, context))
    yield ""
    yield from _fact_lines(job, context)
    yield from _step_lines(job, context)
    yield from _wait_lines(job, context)
    yield from _history_lines(job, context)
    yield from _next_steps(job, context)


def _headline(job: Job, context: RenderContext) -> str:
    word = f"{job.phase.value}, being cancelled" if job.cancelling else job.phase.value
    phase = context.paint(word, PHASE_COLOURS[job.phase])
    done = (
        f" {progress_percent(job)}" if job.phase is Phase.RUNNING and progress_percent(job) else ""
    )
    return f"{context.paint(job.id, 'bold')}   {phase}{done}"


def _status_lines(job: Job, context: RenderContext) -> Iterator[str]:
    """Return why it is where it is, and its last failure."""
    if job.phase is Phase.RUNNING:
        if job.progress and job.progress.message:
            yield one_line(job.progress.message)
    elif job.message or job.reason:
        yield one_line(": ".join(filter(None, (job.reason, job.message))))
    if job.error and job.phase is not Phase.SUCCEEDED:
        text = f"{job.error.type}: {job.error.message or ''} ({job.error.category})"
        yield context.paint(one_line(text), "red")


def _fact_lines(job: Job, context: RenderContext) -> Iterator[str]:
    for label, value in _job_facts(job, context.now):
        if value:
            yield f"{context.paint(label.ljust(LABEL_WIDTH), 'dim')}{one_line(value)}"


def _job_facts(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    yield "Type", job.type
    yield "Queue", job.queue + (f", priority {job.priority}" if job.priority else "")
    yield "Attempts", attempts_text(job)
    yield "Created", time_and_age(job.created_at, now)
    yield "Started", time_and_age(job.first_started_at or job.started_at, now)
    yield "Ended", time_and_age(job.completed_at, now) + _duration_text(job)
    yield "Next", _expected_time(job.next_attempt_at) if job.phase is Phase.RETRYING else ""
    yield "Waits for", ", ".join(map(_wait_text, job.waiting))
    yield from (("Signal", _signal_text(one)) for one in job.signals)
    yield "Worker", job.worker or ""
    yield from _origin_facts(job)
    yield from _condition_facts(job)
    yield "Labels", ", ".join(f"{key}={value}" for key, value in sorted(job.labels.items()))
    yield "Payload", _json_excerpt(job.payload) or _payload_source(job)
    yield "Checkpoint", "" if job.phase is Phase.SUCCEEDED else _json_excerpt(job.checkpoint)
    yield "Result", _json_excerpt(job.result) or (job.result_ref.uri if job.result_ref else "")


def attempts_text(job: Job) -> str:
    """Return the attempts and what became of them: `4 (3/3 retries, 1 crash)`."""
    counted = {
        "crash": job.crashes,
        "release": job.releases,
        "park": job.parks,
        "redrive": job.redrives,
        "rerun": job.reruns,
    }
    more = [f"{n} {_plural(word, n)}" for word, n in counted.items() if n]
    limit = f"{retries_used(job)} retries" if job.retries or job.max_retries is not None else ""
    inside = ", ".join(filter(None, [limit, *more]))
    return f"{job.attempt} ({inside})" if inside else str(job.attempt)


def _wait_text(wait: Waiting) -> str:
    """Return one thing that a parked job waits for: `Sleep cooling-off until 2026-11-28 …`."""
    until = f" until {format_time(wait.until)}" if wait.until else ""
    what = shown_name(wait.kind, wait.key)
    return f"{what}{until}"


def _signal_text(signal: SignalInfo) -> str:
    """Return a signal with who has sent it: `approval from ada at 2026-11-28 …: true`."""
    sent = f" at {format_time(signal.sent_at)}" if signal.sent_at else ""
    told = _json_excerpt(signal.payload)
    return f"{signal.name} from {signal.sent_by}{sent}" + (f": {told}" if told else "")


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}es" if noun.endswith("sh") else f"{noun}s"


def time_and_age(time: str | None, now: datetime) -> str:
    """Return when that was, and how long ago."""
    return f"{format_time(time)}, {time_since(time, now)} ago" if time else ""


def _expected_time(time: str | None) -> str:
    return f"about {format_time(time)}" if time else ""


def _duration_text(job: Job) -> str:
    return (
        "" if job.duration_seconds is None else f", took {precise_duration(job.duration_seconds)}"
    )


def _origin_facts(job: Job) -> Iterator[tuple[str, str]]:
    yield "Parent", _link_name(job.parent)
    yield "Rerun of", _link_name(job.rerun_of)
    yield "Cron job", _link_name(job.cron_job)
    yield "Key", job.idempotency_key or ""
    yield "Dedup id", job.deduplication_id or ""
    yield "Shares", f"concurrency key {job.concurrency_key}" if job.concurrency_key else ""


def _condition_facts(job: Job) -> Iterator[tuple[str, str]]:
    yield "Not before", format_time(job.not_before) if job.not_before else ""
    yield "Not after", format_time(job.not_after) if job.not_after else ""
    yield "Deadline", format_time(job.deadline_at) if job.deadline_at else ""
    yield "Depends on", depends_on_text(job.depends_on)
    yield "Suspended", "yes" if job.suspended else ""


def _link_name(link: Link | None) -> str:
    return link.name if link else ""


def _json_excerpt(value: Json) -> str:
    return (
        ""
        if value is None
        else truncate(json.dumps(value, ensure_ascii=False), MAX_PAYLOAD_CHARACTERS)
    )


def _payload_source(job: Job) -> str:
    source = job.payload_from
    if source is None:
        return ""
    if source.secret_key_ref:
        return f"key {source.secret_key_ref.key} of Secret {source.secret_key_ref.name}"
    if source.config_map_key_ref:
        return f"key {source.config_map_key_ref.key} of ConfigMap {source.config_map_key_ref.name}"
    return source.uri or ""


def _history_lines(job: Job, context: RenderContext) -> Iterator[str]:
    yield ""
    if job.history_omitted:
        yield context.paint(f"({job.history_omitted} older changes are no longer kept)", "dim")
    yield from render_lines(
        history_table([*job.history, *_current_attempt(job)]),
        colour=context.colour,
        width=context.width,
    )


def _step_lines(job: Job, context: RenderContext) -> Iterator[str]:
    if not job.steps:
        return
    yield ""
    yield from render_lines(steps_table(job.steps), colour=context.colour, width=context.width)


def _wait_lines(job: Job, context: RenderContext) -> Iterator[str]:
    if not job.waits:
        return
    yield ""
    table = waits_table(job.waits, {signal.name for signal in job.signals})
    yield from render_lines(table, colour=context.colour, width=context.width)


def _current_attempt(job: Job) -> list[HistoryEvent]:
    """Return the attempt that is under way: history has only those that have ended."""
    if job.phase is not Phase.RUNNING or job.started_at is None:
        return []
    now = HistoryEvent(
        time=job.started_at, phase=job.phase.value, attempt=job.attempt, worker=job.worker
    )
    return [now]


def _next_steps(job: Job, context: RenderContext) -> Iterator[str]:
    yield from hint_lines(job_hints(job, context.program), context)


def hint_lines(found: "Sequence[Hint]", context: RenderContext) -> Iterator[str]:
    """Return commands to go on with, under each other."""
    if found:
        yield ""
        yield context.paint("Next", "bold")
        size = max(len(hint.command) for hint in found)
        for hint in found:
            yield f"  {hint.command.ljust(size)}   {context.paint(hint.purpose, 'dim')}"


@dataclass(frozen=True, slots=True)
class Hint:
    """A command, and what it is good for."""

    command: str
    purpose: str


def job_hints(job: Job, program: str) -> list[Hint]:
    """Return the next steps that make sense for the job as it is."""
    return [*_phase_hints(job, program), *_log_hint(job)]


def _phase_hints(job: Job, program: str) -> Iterator[Hint]:
    match job.phase:
        case Phase.DEAD_LETTER:
            yield Hint(f"{program} redrive {job.id}", "run it again with fresh budgets")
            yield Hint(f"{program} dismiss {job.id}", "give it up")
        case Phase.SUCCEEDED if job.has_result:
            yield Hint(f"{program} result {job.id}", "print its result")
        case Phase.SUCCEEDED | Phase.CANCELLED:
            yield Hint(f"{program} rerun {job.id}", "run it again, as a new job")
        case Phase.RUNNING if not job.cancelling:
            yield Hint(f"{program} wait {job.id}", "wait until it has finished")
        case _:
            yield from _waiting_hints(job, program)


def _waiting_hints(job: Job, program: str) -> Iterator[Hint]:
    if job.cancelling:
        return
    if job.suspended:
        yield Hint(f"{program} resume {job.id}", "let it start")
    elif job.reason == Reason.QUEUE_PAUSED:
        yield Hint(f"{program} queue resume {job.queue}", "let the queue's jobs start")
    elif job.reason == Reason.WAITING_FOR_DEPENDENCY and job.depends_on:
        yield from waiting_hints(job.depends_on, program)
    elif wanted := wanted_signal(job):
        yield Hint(f"{program} signal {job.id} {wanted} KEY=VALUE", "send what it waits for")
    elif job.phase is Phase.QUEUED:
        yield Hint(f"{program} workers --queue {job.queue}", "list workers that could run it")
    yield Hint(f"{program} cancel {job.id}", "do not run it")


def depends_on_text(depends_on: Sequence[Dependency]) -> str:
    """Return what a job or an array depends on, in one line."""
    return ", ".join(f"{one.called} ({one.outcome.value})" for one in depends_on)


def waiting_hints(depends_on: Sequence[Dependency], program: str) -> Iterator[Hint]:
    """Yield how to look at what a job or an array depends on."""
    jobs = " ".join(one.name for one in depends_on if one.name)
    if jobs:
        yield Hint(f"{program} get {jobs}", "show the jobs it waits for")
    for one in depends_on:
        if one.array:
            yield Hint(f"{program} array get {one.array}", "show the array it waits for")


def wanted_signal(job: Job) -> str:
    """Return the name of the first signal that a parked job waits for; empty if for none."""
    return next((one.key for one in job.waiting if one.kind == WaitKind.SIGNAL), "")


def _log_hint(job: Job) -> Iterator[Hint]:
    """Name the log of the worker that runs or ran it; workers' logs are kubectl's."""
    pod = job.worker or next((one.worker for one in reversed(job.history) if one.worker), None)
    if pod and job.phase is not Phase.SUCCEEDED:
        yield Hint(
            log_command(job.namespace, pod_name(pod), job.id), "its lines in the worker's log"
        )


def log_command(namespace: str, pod: str, job_id: str) -> str:
    """Return how kubectl shows what a job's handler has logged."""
    return f"kubectl -n {namespace} logs {pod} | grep {job_id}"


def cron_job_detail(cron: CronJobInfo, context: RenderContext) -> Iterator[str]:
    """Return the cron job, line by line."""
    state = (
        context.paint("suspended", "yellow") if cron.suspended else context.paint("active", "green")
    )
    yield f"{context.paint(cron.name, 'bold')}   {state}"
    if cron.reason or cron.message:
        yield f"  {one_line(': '.join(filter(None, (cron.reason, cron.message))))}"
    yield ""
    for label, value in _cron_job_facts(cron, context):
        if value:
            yield f"{context.paint(label.ljust(LABEL_WIDTH), 'dim')}{one_line(value)}"
    yield from _cron_job_commands(cron, context)


def _cron_job_facts(cron: CronJobInfo, context: RenderContext) -> Iterator[tuple[str, str]]:
    yield "Schedule", f"{cron.schedule} ({cron.time_zone})"
    yield "Job", f"{cron.type} in queue {cron.queue}"
    yield "Unfinished", str(cron.active)
    yield (
        "Last",
        _time_and_distance(
            cron.last_scheduled_at, time_since(cron.last_scheduled_at, context.now), " ago"
        ),
    )
    yield (
        "Succeeded",
        _time_and_distance(
            cron.last_succeeded_at, time_since(cron.last_succeeded_at, context.now), " ago"
        ),
    )
    yield (
        "Next",
        _time_and_distance(
            cron.next_scheduled_at, time_until(cron.next_scheduled_at, context.now), ""
        ),
    )
    yield from _policy_facts(cron)
    yield from _backfill_facts(cron)


def _time_and_distance(time: str | None, distance: str, suffix: str) -> str:
    return f"{format_time(time)}, {distance}{suffix}" if time else ""


def _policy_facts(cron: CronJobInfo) -> Iterator[tuple[str, str]]:
    if cron.spec:
        yield "If it runs", cron.spec.concurrency_policy.value
        yield "If missed", cron.spec.misfire_policy.value
    if cron.status and cron.status.missed:
        yield "Missed", str(cron.status.missed)


def _backfill_facts(cron: CronJobInfo) -> Iterator[tuple[str, str]]:
    done = cron.status and cron.status.backfill
    if done:
        word = "done" if done.completed else "under way"
        span = f"{format_time(done.from_)} to {format_time(done.to)}"
        yield "Backfill", f"{done.created} of {done.total} runs, {word} ({span})"


def _cron_job_commands(cron: CronJobInfo, context: RenderContext) -> Iterator[str]:
    act = "resume" if cron.suspended else "suspend"
    yield ""
    yield context.paint("Next", "bold")
    note = context.paint("run it once, now", "dim")
    yield f"  {context.program} cron trigger {cron.name}   {note}"
    yield f"  {context.program} cron {act} {cron.name}"
    yield f"  {context.program} list --cron-job {cron.name}   {context.paint('its jobs', 'dim')}"
