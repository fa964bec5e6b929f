"""Time skipping: what a handler sets a timer for goes by the fake clock, and nothing else does.

Whether code is a handler's is told by its context, which the tasks it starts inherit. So the test
itself, its fixtures and its event loop keep real time. Only `asyncio.sleep` lets time be skipped:
a timeout around real work must not fire because nothing else is going on.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from asyncjob.testing.clock import FakeClock

_PATCHED_METHODS: Final = ("time", "call_later", "call_at")
_PATCH_KEY: Final = "_asyncjob_testing"


@dataclass(frozen=True, slots=True, eq=False)
class HandlerTime:
    """The clock of one handler's run; `owner` is how the clock knows the run."""

    clock: FakeClock
    owner: object


_HANDLER_TIME: contextvars.ContextVar[HandlerTime | None] = contextvars.ContextVar(
    "timekeeper", default=None
)


def context_with_fake_time(handler_time: HandlerTime) -> contextvars.Context:
    """Return a copy of the current context in which timers go by the fake clock."""
    context = contextvars.copy_context()
    context.run(_HANDLER_TIME.set, handler_time)
    return context


@contextmanager
def skip_sleeps() -> Iterator[None]:
    """Have the running loop look at the context of whoever asks it for time."""
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
        keeper = _HANDLER_TIME.get()
        return self.real_time() if keeper is None else keeper.clock.monotonic

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        keeper = _HANDLER_TIME.get()
        if keeper is None:
            return self.real_call_later(delay, callback, *args, context=context)
        clock, sleeps = keeper.clock, _is_called_by_sleep()
        when = clock.monotonic + delay
        return clock.set_timer(when, callback, args, context, owner=keeper.owner, skippable=sleeps)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        keeper = _HANDLER_TIME.get()
        if keeper is None:
            return self.real_call_at(when, callback, *args, context=context)
        owner = keeper.owner
        return keeper.clock.set_timer(when, callback, args, context, owner=owner, skippable=False)


def _is_called_by_sleep() -> bool:
    frame = inspect.currentframe()
    patched = frame.f_back if frame else None
    caller = patched.f_back if patched else None
    return caller is not None and caller.f_code is asyncio.sleep.__code__
