"""What a job keeps beside its history: steps and waits, and the signals that it was sent."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.lifecycle.waits import WaitKind, shown_key
from asyncjob.models.job_status import Waiting
from asyncjob.rest.job_records import StepInfo, WaitInfo
from asyncjob.rest.jobs import Job
from asyncjob_gateway.dashboard.formatting import (
    DisplayTime,
    display_time,
    format_duration,
    format_json,
)


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A step that is done, or a wait: `state` is what became of it, at `at` if that is known.

    `more` is what else there is to say; `is_open` for what a parked job waits for now.
    """

    kind: str
    key: str
    state: str
    at: DisplayTime | None
    more: str = ""
    is_open: bool = False

    @property
    def name(self) -> str:
        """Return its key as people read it."""
        return self.key if self.kind else shown_key(self.key)


def record_rows(job: Job, now: datetime) -> list[RecordRow]:
    """Return steps and waits in the order of their times; what is waited for now comes last."""
    open_keys = {one.key for one in job.waiting}
    done = [(one.completed_at or "", _step_row(one, now)) for one in job.steps]
    signals = {signal.name for signal in job.signals}
    ended = [
        (one.until, _wait_row(one, signals, now)) for one in job.waits if one.key not in open_keys
    ]
    in_order = sorted([*done, *ended], key=lambda pair: (pair[0], pair[1].key))
    return [*(row for _, row in in_order), *(_open_row(one, now) for one in job.waiting)]


def _step_row(step: StepInfo, now: datetime) -> RecordRow:
    start, end = step.started_at, step.completed_at
    took = seconds_between(start, end) if start and end else None
    parts = [
        f"attempt {step.attempt}",
        "" if took is None else f"took {format_duration(max(0.0, took))}",
        f"result of {step.size_bytes:,} bytes",
    ]
    return RecordRow(
        "Step", step.key, "done", display_time(end, now), ", ".join(filter(None, parts))
    )


def _wait_row(wait: WaitInfo, signals: Collection[str], now: datetime) -> RecordRow:
    """Return a wait that the job is not parked for: over by time, or not found over by it."""
    is_sleep = wait.kind == WaitKind.SLEEP
    if wait.kind == WaitKind.SIGNAL and wait.key in signals:
        return RecordRow(_kind_word(wait.kind), wait.key, "has come", None)
    if wait.over:
        state = "over" if is_sleep else "timed out"
    else:
        state = "lasts until" if is_sleep else "has time until"
    return RecordRow(_kind_word(wait.kind), wait.key, state, display_time(wait.until, now))


def _open_row(wait: Waiting, now: datetime) -> RecordRow:
    until = display_time(wait.until, now)
    state = "is waited for until" if until else "is waited for"
    return RecordRow(_kind_word(wait.kind), wait.key, state, until, is_open=True)


def _kind_word(kind: str) -> str:
    """Return the kind of a wait; the key of one for children says that it is for them."""
    return "" if kind == WaitKind.CHILDREN else kind


@dataclass(frozen=True, slots=True)
class SignalRow:
    """A signal that the job has been sent; `text` is its payload, if the reader may see it."""

    name: str
    sender: str
    at: DisplayTime | None
    text: str
    was_cut: bool


def signal_rows(job: Job, now: datetime, *, with_payloads: bool) -> list[SignalRow]:
    """Return the signals that the job has been sent, in the order of their names."""
    return [
        SignalRow(
            one.name,
            one.sent_by,
            display_time(one.sent_at, now),
            *(format_json(one.payload) if with_payloads else ("", False)),
        )
        for one in job.signals
    ]
