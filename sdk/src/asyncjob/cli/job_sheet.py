"""One job as a person wants it: how it stands, what it is, what happened, what to do. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import precise_duration, time_since
from asyncjob.cli.hints import job_hints
from asyncjob.cli.job_rows import progress_percent, retries_used
from asyncjob.cli.looks import PHASE_COLOURS
from asyncjob.cli.tables import one_line, render_lines, styled, truncate
from asyncjob.cli.timeline import format_time, history_table
from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Happening, Job, Link

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
    yield "Created", _time_and_age(job.created_at, now)
    yield "Started", _time_and_age(job.first_started_at or job.started_at, now)
    yield "Ended", _time_and_age(job.completed_at, now) + _duration_text(job)
    yield "Next", _expected_time(job.next_attempt_at) if job.phase is Phase.RETRYING else ""
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
        "redrive": job.redrives,
        "rerun": job.reruns,
    }
    more = [f"{n} {_plural(word, n)}" for word, n in counted.items() if n]
    limit = f"{retries_used(job)} retries" if job.retries or job.max_retries is not None else ""
    inside = ", ".join(filter(None, [limit, *more]))
    return f"{job.attempt} ({inside})" if inside else str(job.attempt)


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}es" if noun.endswith("sh") else f"{noun}s"


def _time_and_age(time: str | None, now: datetime) -> str:
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
    yield "Schedule", _link_name(job.cron_job)
    yield "Key", job.idempotency_key or ""
    yield "Dedup id", job.deduplication_id or ""
    yield "Shares", f"concurrency key {job.concurrency_key}" if job.concurrency_key else ""


def _condition_facts(job: Job) -> Iterator[tuple[str, str]]:
    yield "Not before", format_time(job.not_before) if job.not_before else ""
    yield "Not after", format_time(job.not_after) if job.not_after else ""
    yield "Depends on", ", ".join(f"{one.name} ({one.outcome.value})" for one in job.depends_on)
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


def _current_attempt(job: Job) -> list[Happening]:
    """Return the attempt that is under way: history has only those that have ended."""
    if job.phase is not Phase.RUNNING or job.started_at is None:
        return []
    now = Happening(
        time=job.started_at, phase=job.phase.value, attempt=job.attempt, worker=job.worker
    )
    return [now]


def _next_steps(job: Job, context: RenderContext) -> Iterator[str]:
    found = job_hints(job, context.program)
    if found:
        yield ""
        yield context.paint("Next", "bold")
        size = max(len(hint.command) for hint in found)
        for hint in found:
            yield f"  {hint.command.ljust(size)}   {context.paint(hint.purpose, 'dim')}"
