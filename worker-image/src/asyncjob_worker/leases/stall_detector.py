"""Watchdogs between the event loop and the heartbeat thread.

The heartbeat thread notices an event loop that is blocked, and the event loop a heartbeat thread
that hangs. Both count their own checks, not seconds: a machine that slept wakes with all clocks
advanced and nothing wrong.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType

import structlog

from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.metrics import Metrics

log = structlog.get_logger()

_RUNTIME_PACKAGES = {"asyncio", "asyncjob_worker", "uvloop"}
"""What runs handlers: the code that one of these has called is the handler's own."""


class LivenessCounter:
    """A count of beats by one party, looked at by another."""

    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        """Show that it lives."""
        self.ticks += 1


class Watchdog:
    """Counts his looks at a pulse since it last beat."""

    def __init__(self, counter: LivenessCounter) -> None:
        self._counter = counter
        self._last_ticks = -1
        self.missed = 0

    def check(self) -> int:
        """Look once; returns how many looks in a row have found no beat."""
        beats = self._counter.ticks
        self.missed = self.missed + 1 if beats == self._last_ticks else 0
        self._last_ticks = beats
        return self.missed


class EventLoopStallDetector:
    """Names the handler that holds the event loop while it stands still, in log and metrics.

    Used in the heartbeat thread, with a look every `tick` seconds; `allowed_misses` is the number
    of looks without a beat that is normal. `blocking_job` finds the job, where that can be known;
    `loop_thread` is the thread that runs the loop.
    """

    def __init__(
        self,
        counter: LivenessCounter,
        metrics: Metrics,
        *,
        allowed_misses: int,
        tick: float,
        loop_thread: Callable[[], int | None],
        blocking_job: Callable[[], HeldJob | None] = lambda: None,
    ) -> None:
        self._watchdog = Watchdog(counter)
        self._metrics = metrics
        self._allowed_misses = allowed_misses
        self._tick = tick
        self._loop_thread = loop_thread
        self._blocking_job = blocking_job
        self._stalled = False
        self._reported_job: HeldJob | None = None

    def check(self, jobs: Callable[[], Sequence[str]]) -> None:
        """Look once; log the beginning and the end of a stall, and whom it passes on to."""
        missed = self._watchdog.check()
        if missed > self._allowed_misses:
            self._report_stall(self._blocking_job(), missed, jobs)
        elif not missed and self._stalled:
            self._stalled = False
            log.warning("event loop runs again")

    def _report_stall(
        self, held: HeldJob | None, missed: int, jobs: Callable[[], Sequence[str]]
    ) -> None:
        type_ = held.job.type if held else ""
        if not self._stalled or (held is not None and held is not self._reported_job):
            self._metrics.stall_begun(type_)
            log.warning(
                "event loop blocked: an async handler does not yield",
                job=held.job.name if held else "unknown",
                type=type_ or "unknown",
                jobs=jobs(),
                at=current_line(self._loop_thread()),
            )
        self._metrics.stalled(type_, self._tick * (1 if self._stalled else missed))
        self._stalled, self._reported_job = True, held


def current_line(thread: int | None) -> str:
    """Return the line that a thread is at, of a handler's own code; and what that has called."""
    frame = innermost = sys._current_frames().get(thread or 0)  # noqa: SLF001  # the only way
    if innermost is None:
        return "unknown"
    own = innermost
    while frame is not None and not _is_runtime(frame):
        own, frame = frame, frame.f_back
    return (
        _format_frame(own)
        if own is innermost
        else f"{_format_frame(own)}, by now {_format_frame(innermost)}"
    )


def _is_runtime(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _RUNTIME_PACKAGES


def _format_frame(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def main_thread_id() -> int | None:
    """Return the thread that runs the event loop of a worker process."""
    return threading.main_thread().ident
