"""Two watchmen: the heartbeat thread notices an event loop that stands still, and vice versa.

Both count their own looks, not seconds: a machine that slept wakes with all clocks advanced and
nothing wrong.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType

import structlog

from asyncjob_worker.held import HeldJob
from asyncjob_worker.metrics import Metrics

log = structlog.get_logger()

_RUNTIME = {"asyncio", "asyncjob_worker", "uvloop"}
"""What runs handlers: the code that one of these has called is the handler's own."""


class Pulse:
    """A count of beats by one party, looked at by another."""

    def __init__(self) -> None:
        self.beats = 0

    def beat(self) -> None:
        """Show that it lives."""
        self.beats += 1


class Watchman:
    """Counts his looks at a pulse since it last beat."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._seen = -1
        self.missed = 0

    def look(self) -> int:
        """Look once; returns how many looks in a row have found no beat."""
        beats = self._pulse.beats
        self.missed = self.missed + 1 if beats == self._seen else 0
        self._seen = beats
        return self.missed


class StallLog:
    """Names the handler that holds the event loop while it stands still, in log and metrics.

    Used in the heartbeat thread, with a look every `tick` seconds; `allowed` is the number of looks
    without a beat that is normal. `in_the_way` finds the job, where that can be known;
    `loop_thread` is the thread that runs the loop.
    """

    def __init__(
        self,
        pulse: Pulse,
        metrics: Metrics,
        *,
        allowed: int,
        tick: float,
        loop_thread: Callable[[], int | None],
        in_the_way: Callable[[], HeldJob | None] = lambda: None,
    ) -> None:
        self._watchman = Watchman(pulse)
        self._metrics = metrics
        self._allowed = allowed
        self._tick = tick
        self._loop_thread = loop_thread
        self._in_the_way = in_the_way
        self._stalled = False
        self._blamed: HeldJob | None = None

    def look(self, jobs: Callable[[], Sequence[str]]) -> None:
        """Look once; log the beginning and the end of a stall, and whom it passes on to."""
        missed = self._watchman.look()
        if missed > self._allowed:
            self._blame(self._in_the_way(), missed, jobs)
        elif not missed and self._stalled:
            self._stalled = False
            log.warning("event loop runs again")

    def _blame(self, held: HeldJob | None, missed: int, jobs: Callable[[], Sequence[str]]) -> None:
        type_ = held.job.type if held else ""
        if not self._stalled or (held is not None and held is not self._blamed):
            self._metrics.stall_begun(type_)
            log.warning(
                "event loop blocked: an async handler does not yield",
                job=held.job.name if held else "unknown",
                type=type_ or "unknown",
                jobs=jobs(),
                at=where_is(self._loop_thread()),
            )
        self._metrics.stalled(type_, self._tick * (1 if self._stalled else missed))
        self._stalled, self._blamed = True, held


def where_is(thread: int | None) -> str:
    """Return the line that a thread is at, of a handler's own code; and what that has called."""
    frame = innermost = sys._current_frames().get(thread or 0)  # noqa: SLF001  # the only way
    if innermost is None:
        return "unknown"
    own = innermost
    while frame is not None and not _is_runtime(frame):
        own, frame = frame, frame.f_back
    return _line(own) if own is innermost else f"{_line(own)}, by now {_line(innermost)}"


def _is_runtime(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _RUNTIME


def _line(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def main_thread_id() -> int | None:
    """Return the thread that runs the event loop of a worker process."""
    return threading.main_thread().ident
