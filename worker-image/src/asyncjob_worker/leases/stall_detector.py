"""Watchdogs between the event loop and the heartbeat thread.

The heartbeat thread notices an event loop that is blocked, and the event loop notices a heartbeat
thread that hangs. Both count their own checks, not seconds: after a machine slept all clocks have
advanced and nothing is wrong.
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
"""Packages that run handlers: the code that they have called is the handler's own."""


class LivenessCounter:
    """A counter that one thread increments while it runs, and that others watch."""

    def __init__(self) -> None:
        self.ticks = 0

    def tick(self) -> None:
        """Show that the thread runs."""
        self.ticks += 1


class Watchdog:
    """Counts its checks since the counter last changed."""

    def __init__(self, counter: LivenessCounter) -> None:
        self._counter = counter
        self._last_ticks = -1
        self.missed = 0

    def check(self) -> int:
        """Check once; return how many checks in a row have found no new tick."""
        ticks = self._counter.ticks
        self.missed = self.missed + 1 if ticks == self._last_ticks else 0
        self._last_ticks = ticks
        return self.missed


class EventLoopStallDetector:
    """Reports stalls of the event loop in log and metrics, with the handler that blocks it.

    Used in the heartbeat thread, which checks every `tick` seconds; `allowed_misses` is the number
    of checks without a new tick that is normal. `blocking_job` returns the job whose handler has
    the event loop, if it is known; `loop_thread` returns the ID of the thread that runs the loop.
    """

    def __init__(
        self,
        counter: LivenessCounter,
        metrics: Metrics,
        *,
        allowed_misses: int,
        tick: float,
        loop_thread: Callable[[], int | None],
        blocking_job: Callable[[], HeldJob | None],
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
        """Check once; log the beginning and the end of a stall, and each further job in it.

        `jobs` returns the names of the running jobs.
        """
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
    """Return the line of the handler's own code that a thread is at, and the line it has called."""
    frame = innermost = sys._current_frames().get(thread or 0)  # noqa: SLF001  # the only way
    if innermost is None:
        return "unknown"
    own = innermost
    while frame is not None and not _is_runtime(frame):
        own, frame = frame, frame.f_back
    if own is innermost:
        return _format_frame(own)
    return f"{_format_frame(own)}, by now {_format_frame(innermost)}"


def _is_runtime(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _RUNTIME_PACKAGES


def _format_frame(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def main_thread_id() -> int | None:
    """Return the ID of the thread that runs the event loop of a worker process."""
    return threading.main_thread().ident
