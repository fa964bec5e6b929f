"""The fake clock, and the patch that makes handlers' timers go by it.

The clock moves only when told to; all time in the kit is read here. Whether code is a handler's is
known from its context, which the tasks it starts inherit: the test itself, its fixtures and its
event loop keep real time. Only `asyncio.sleep` lets time be skipped: a timeout around real work
must not fire because nothing else is going on.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
    """Time as handlers and jobs see it, in seconds since the start.

    `on_timer` is called when a handler has set a timer: it may be asleep now.
    """

    def __init__(
        self, start: datetime = DEFAULT_START, *, on_timer: Callable[[], object] = lambda: None
    ) -> None:
        self._start = start
        self._elapsed = 0.0
        self._timers: list[Timer] = []
        self._closed = False
        self._on_timer = on_timer

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
        self._on_timer()
        return handle


_PATCHED_METHODS: Final = ("time", "call_later", "call_at")
_PATCH_KEY: Final = "_asyncjob_testing"


@dataclass(frozen=True, slots=True, eq=False)
class HandlerTime:
    """The clock of one handler's run; `owner` is how the clock knows the run."""

    clock: FakeClock
    owner: object


_HANDLER_TIME: contextvars.ContextVar[HandlerTime | None] = contextvars.ContextVar(
    "handler_time", default=None
)


def context_with_fake_time(handler_time: HandlerTime) -> contextvars.Context:
    """Return a copy of the current context in which timers go by the fake clock."""
    context = contextvars.copy_context()
    context.run(_HANDLER_TIME.set, handler_time)
    return context


@contextmanager
def skip_sleeps() -> Iterator[None]:
    """Have the running loop look at the context of the code that asks it for time."""
    loop = asyncio.get_running_loop()
    patched = loop.__dict__.get(_PATCH_KEY) or _patch(loop)
    patched.users += 1
    try:
        yield
    finally:
        patched.users -= 1
        if not patched.users:
            _restore(loop, patched)


def _patch(loop: asyncio.AbstractEventLoop) -> "_LoopPatch":
    before: dict[str, Any] = {
        name: loop.__dict__[name] for name in _PATCHED_METHODS if name in loop.__dict__
    }
    patched = _LoopPatch(before, loop.time, loop.call_later, loop.call_at)
    loop.__dict__[_PATCH_KEY] = patched
    for name in _PATCHED_METHODS:
        setattr(loop, name, getattr(patched, name))
    return patched


def _restore(loop: asyncio.AbstractEventLoop, patched: "_LoopPatch") -> None:
    for name in (*_PATCHED_METHODS, _PATCH_KEY):
        delattr(loop, name)
    loop.__dict__.update(patched.before)


@dataclass(slots=True)
class _LoopPatch:
    """Serves all clusters of a loop, in whatever order they come and go."""

    before: Mapping[str, Any]
    real_time: Callable[[], float]
    real_call_later: Callable[..., asyncio.TimerHandle]
    real_call_at: Callable[..., asyncio.TimerHandle]
    users: int = 0

    def time(self) -> float:
        handler_time = _HANDLER_TIME.get()
        return self.real_time() if handler_time is None else handler_time.clock.monotonic

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handler_time = _HANDLER_TIME.get()
        if handler_time is None:
            return self.real_call_later(delay, callback, *args, context=context)
        clock, sleeps = handler_time.clock, _is_called_by_sleep()
        when = clock.monotonic + delay
        return clock.set_timer(
            when, callback, args, context, owner=handler_time.owner, skippable=sleeps
        )

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handler_time = _HANDLER_TIME.get()
        if handler_time is None:
            return self.real_call_at(when, callback, *args, context=context)
        owner = handler_time.owner
        return handler_time.clock.set_timer(
            when, callback, args, context, owner=owner, skippable=False
        )


def _is_called_by_sleep() -> bool:
    frame = inspect.currentframe()
    patched = frame.f_back if frame else None
    caller = patched.f_back if patched else None
    return caller is not None and caller.f_code is asyncio.sleep.__code__
