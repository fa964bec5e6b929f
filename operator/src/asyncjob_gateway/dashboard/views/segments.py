"""What a job spent its time on: waiting and running, one after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.rest.job import Job
from asyncjob_gateway.dashboard.views.rows import PhaseBadge, phase_badge
from asyncjob_gateway.dashboard.words import format_duration

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
