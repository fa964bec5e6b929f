"""One job as a person wants it: how it stands, what it is, what happened, what to do. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import exactly, since
from asyncjob.cli.hints import hints
from asyncjob.cli.job_rows import percent, retries
from asyncjob.cli.looks import COLOURS
from asyncjob.cli.tables import cut, lines, one_line, styled
from asyncjob.cli.timeline import clock, timeline
from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import Happening, Job, Link

PAYLOAD_ROOM: Final = 400
"""Characters of a payload or result that are shown; `-o json` has all of it."""
LABEL: Final = 12


@dataclass(frozen=True, slots=True)
class Look:
    """How to draw."""

    now: datetime
    program: str = "asyncjob"
    colour: bool = False
    width: int | None = None

    def paint(self, text: str, colour: str) -> str:
        """Return the text in a colour, if there are any."""
        return styled(text, colour) if self.colour else text


def sheet(job: Job, look: Look) -> Iterator[str]:
    """Return the job, line by line."""
    yield _headline(job, look)
    yield from (f"  {line}" for line in _standing(job, look))
    yield ""
    yield from _facts(job, look)
    yield from _history(job, look)
    yield from _next(job, look)


def _headline(job: Job, look: Look) -> str:
    word = f"{job.phase.value}, being cancelled" if job.cancelling else job.phase.value
    phase = look.paint(word, COLOURS[job.phase])
    done = f" {percent(job)}" if job.phase is Phase.RUNNING and percent(job) else ""
    return f"{look.paint(job.id, 'bold')}   {phase}{done}"


def _standing(job: Job, look: Look) -> Iterator[str]:
    """Return why it is where it is, and its last failure."""
    if job.phase is Phase.RUNNING:
        if job.progress and job.progress.message:
            yield one_line(job.progress.message)
    elif job.message or job.reason:
        yield one_line(": ".join(filter(None, (job.reason, job.message))))
    if job.error and job.phase is not Phase.SUCCEEDED:
        text = f"{job.error.type}: {job.error.message or ''} ({job.error.category})"
        yield look.paint(one_line(text), "red")


def _facts(job: Job, look: Look) -> Iterator[str]:
    for label, value in _all_facts(job, look.now):
        if value:
            yield f"{look.paint(label.ljust(LABEL), 'dim')}{one_line(value)}"


def _all_facts(job: Job, now: datetime) -> Iterator[tuple[str, str]]:
    yield "Type", job.type
    yield "Queue", job.queue + (f", priority {job.priority}" if job.priority else "")
    yield "Attempts", attempts(job)
    yield "Created", _when(job.created_at, now)
    yield "Started", _when(job.first_started_at or job.started_at, now)
    yield "Ended", _when(job.completed_at, now) + _duration(job)
    yield "Next", _ahead(job.next_attempt_at) if job.phase is Phase.RETRYING else ""
    yield "Worker", job.worker or ""
    yield from _origin(job)
    yield from _conditions(job)
    yield "Labels", ", ".join(f"{key}={value}" for key, value in sorted(job.labels.items()))
    yield "Payload", _json(job.payload) or _source(job)
    yield "Checkpoint", "" if job.phase is Phase.SUCCEEDED else _json(job.checkpoint)
    yield "Result", _json(job.result) or (job.result_ref.uri if job.result_ref else "")


def attempts(job: Job) -> str:
    """Return the attempts and what became of them: `4 (3/3 retries, 1 crash)`."""
    counted = {
        "crash": job.crashes,
        "release": job.releases,
        "redrive": job.redrives,
        "rerun": job.reruns,
    }
    more = [f"{n} {_plural(word, n)}" for word, n in counted.items() if n]
    limit = f"{retries(job)} retries" if job.retries or job.max_retries is not None else ""
    inside = ", ".join(filter(None, [limit, *more]))
    return f"{job.attempt} ({inside})" if inside else str(job.attempt)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}es" if word.endswith("sh") else f"{word}s"


def _when(time: str | None, now: datetime) -> str:
    return f"{clock(time)}, {since(time, now)} ago" if time else ""


def _ahead(time: str | None) -> str:
    return f"about {clock(time)}" if time else ""


def _duration(job: Job) -> str:
    return "" if job.duration_seconds is None else f", took {exactly(job.duration_seconds)}"


def _origin(job: Job) -> Iterator[tuple[str, str]]:
    yield "Parent", _link(job.parent)
    yield "Rerun of", _link(job.rerun_of)
    yield "Schedule", _link(job.cron_job)
    yield "Key", job.idempotency_key or ""
    yield "Dedup id", job.deduplication_id or ""
    yield "Shares", f"concurrency key {job.concurrency_key}" if job.concurrency_key else ""


def _conditions(job: Job) -> Iterator[tuple[str, str]]:
    yield "Not before", clock(job.not_before) if job.not_before else ""
    yield "Not after", clock(job.not_after) if job.not_after else ""
    yield "Depends on", ", ".join(f"{one.name} ({one.outcome.value})" for one in job.depends_on)
    yield "Suspended", "yes" if job.suspended else ""


def _link(link: Link | None) -> str:
    return link.name if link else ""


def _json(value: Json) -> str:
    return "" if value is None else cut(json.dumps(value, ensure_ascii=False), PAYLOAD_ROOM)


def _source(job: Job) -> str:
    source = job.payload_from
    if source is None:
        return ""
    if source.secret_key_ref:
        return f"key {source.secret_key_ref.key} of Secret {source.secret_key_ref.name}"
    if source.config_map_key_ref:
        return f"key {source.config_map_key_ref.key} of ConfigMap {source.config_map_key_ref.name}"
    return source.uri or ""


def _history(job: Job, look: Look) -> Iterator[str]:
    yield ""
    if job.history_omitted:
        yield look.paint(f"({job.history_omitted} older changes are no longer kept)", "dim")
    yield from lines(timeline([*job.history, *_running(job)]), colour=look.colour, width=look.width)


def _running(job: Job) -> list[Happening]:
    """Return the attempt that is under way: history has only those that have ended."""
    if job.phase is not Phase.RUNNING or job.started_at is None:
        return []
    now = Happening(
        time=job.started_at, phase=job.phase.value, attempt=job.attempt, worker=job.worker
    )
    return [now]


def _next(job: Job, look: Look) -> Iterator[str]:
    found = hints(job, look.program)
    if found:
        yield ""
        yield look.paint("Next", "bold")
        size = max(len(hint.command) for hint in found)
        for hint in found:
            yield f"  {hint.command.ljust(size)}   {look.paint(hint.purpose, 'dim')}"
