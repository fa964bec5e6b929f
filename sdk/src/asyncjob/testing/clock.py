"""The fake clock: moves only when it is told to. All time in the kit is read here."""

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from asyncjob.lifecycle.timestamps import format_timestamp

DEFAULT_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When a fake clock starts unless told otherwise."""

_MONOTONIC_START: Final = 1000.0
"""What a monotonic clock shows at the start is arbitrary; zero would hide mistakes."""

_ROUNDING_SECONDS: Final = 1e-6


class _FakeTimerHandle(asyncio.TimerHandle):
    """A handle that no event loop keeps count of."""

    def cancel(self) -> None:
        asyncio.Handle.cancel(self)


@dataclass(frozen=True, slots=True)
class Timer:
    """A callback that waits for its time. `skippable`: by `asyncio.sleep`, which may be skipped."""

    handle: asyncio.TimerHandle
    fire: Callable[[], object]
    owner: object
    skippable: bool


class ClockClosed(BaseException):  # ends a handler, as CancelledError does
    """The test is over, and a handler that ignored being cancelled wants to sleep on."""


class FakeClock:
    """Time as handlers and jobs see it, in seconds since the start."""

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers: list[Timer] = []
        self._closed = False
        self.on_timer: Callable[[], object] = lambda: None
        """Called when a handler has set a timer: it may be asleep now."""

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    @property
    def monotonic(self) -> float:
        """What `loop.time()` shows to a handler."""
        return _MONOTONIC_START + self._elapsed

    @property
    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    @property
    def text(self) -> str:
        """The wall clock as RFC 3339 text."""
        return format_timestamp(self.now)

    def elapsed_at(self, time: datetime) -> float:
        """Return on the scale of `elapsed` when the wall clock will show the moment."""
        return (time - self._start).total_seconds()

    def move_to(self, elapsed: float) -> None:
        """Move ahead, never back; timers that have come due are called in the event loop."""
        self._elapsed = max(self._elapsed, elapsed)
        due = [
            timer
            for timer in self.timers()
            if timer.handle.when() <= self.monotonic + _ROUNDING_SECONDS
        ]
        for timer in sorted(due, key=lambda timer: timer.handle.when()):
            self._timers.remove(timer)
            timer.fire()

    def close(self) -> None:
        """Let nothing sleep any more: no time will pass."""
        self._closed = True

    def next_timer(self) -> float | None:
        """Return when the next timer is due, on the scale of `elapsed`."""
        return min(
            (timer.handle.when() - _MONOTONIC_START for timer in self.timers()), default=None
        )

    def is_sleeping(self, owner: object) -> bool:
        """Return whether something of the owner's sleeps."""
        return any(timer.skippable and timer.owner is owner for timer in self.timers())

    def timers(self) -> list[Timer]:
        """Return the timers that still count."""
        self._timers = [timer for timer in self._timers if not timer.handle.cancelled()]
        return self._timers

    def set_timer(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        *,
        owner: object,
        skippable: bool,
    ) -> asyncio.TimerHandle:
        """Have a callback called at a monotonic time; raises ClockClosed after the end."""
        if self._closed:
            raise ClockClosed
        loop = asyncio.get_running_loop()
        handle = _FakeTimerHandle(when, callback, args, loop, context)

        def call() -> None:
            loop.call_soon(callback, *args, context=context)

        self._timers.append(Timer(handle, call, owner, skippable))
        self.on_timer()
        return handle
