"""Two watchmen: the heartbeat thread notices an event loop that stands still, and vice versa.

Both count their own looks, not seconds: a machine that slept wakes with all clocks advanced and
nothing wrong.
"""

import sys
import threading
from collections.abc import Callable, Sequence

import structlog

log = structlog.get_logger()


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
    """Names the handlers at work while the event loop stands still; used in the heartbeat thread.

    `allowed` is the number of looks without a beat that is normal. `loop_thread` is the thread
    that runs the loop.
    """

    def __init__(
        self, pulse: Pulse, *, allowed: int, loop_thread: Callable[[], int | None]
    ) -> None:
        self._watchman = Watchman(pulse)
        self._allowed = allowed
        self._loop_thread = loop_thread
        self._stalled = False
        self.stalls = 0

    def look(self, jobs: Callable[[], Sequence[str]]) -> None:
        """Look once; log the beginning and the end of a stall."""
        missed = self._watchman.look()
        if missed > self._allowed and not self._stalled:
            self._stalled = True
            self.stalls += 1
            log.warning(
                "event loop blocked: an async handler does not yield",
                jobs=jobs(),
                at=where_is(self._loop_thread()),
            )
        elif not missed and self._stalled:
            self._stalled = False
            log.warning("event loop runs again")


def where_is(thread: int | None) -> str:
    """Return the line of code that a thread is at."""
    frame = sys._current_frames().get(thread or 0)  # noqa: SLF001  # the only way to see it
    if frame is None:
        return "unknown"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def main_thread_id() -> int | None:
    """Return the thread that runs the event loop of a worker process."""
    return threading.main_thread().ident
