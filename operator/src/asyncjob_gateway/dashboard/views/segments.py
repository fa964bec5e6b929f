"""What a job spent its time on: waiting and running, one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.lifecycle.phases import FINISHED, Phase
from asyncjob.lifecycle.timestamps import try_from_text
from asyncjob.rest.job import Job
from asyncjob_gateway.dashboard.views.rows import Mark, mark
from asyncjob_gateway.dashboard.words import span

WIDTH: Final = 1000
_LEAST: Final = 4


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the bar: `x` and `width` of `WIDTH`, and what it stands for in words."""

    mark: Mark
    words: str
    x: int
    width: int


_Part = tuple[Phase, datetime, datetime]


def segments(job: Job, now: datetime) -> list[Segment]:
    """Return the parts of the job's life that history tells of, widths true to their lengths."""
    parts = [part for part in _parts(job, now) if part[2] > part[1]]
    whole = sum((end - start).total_seconds() for _, start, end in parts)
    return list(_placed(parts, whole)) if whole > 0 else []


def _parts(job: Job, now: datetime) -> Iterator[_Part]:
    """Yield phase, start and end; claims are not in the history but for the start they leave."""
    known = [(at, one) for one in job.history if (at := try_from_text(one.time))]
    if not known:
        return
    at, phase = known[0][0], Phase.QUEUED
    for time, one in known[1:]:
        started = try_from_text(one.start_time) if one.start_time else None
        if started and at <= started <= time:
            yield phase, at, started
            yield Phase.RUNNING, started, time
        else:
            yield phase, at, time
        at, phase = time, Phase(one.phase)
    if job.phase in FINISHED:
        return
    if job.phase is Phase.RUNNING and job.started_at:
        started = max(at, try_from_text(job.started_at) or at)
        yield phase, at, started
        at = started
    yield job.phase, at, now


def _placed(parts: Sequence[_Part], whole: float) -> Iterator[Segment]:
    x = 0.0
    for phase, start, end in parts:
        seconds = (end - start).total_seconds()
        width = WIDTH * seconds / whole
        shown = mark(phase)
        words = f"{shown.word} for {span(seconds)}"
        yield Segment(shown, words, round(x), max(_LEAST, round(x + width) - round(x)))
        x += width
