"""Waits that a handler has asked for: `await` begins them, and one that is dropped is no wait.

`job.signal("approval", bool)` in a line of its own, without `await`, would let the next line run
without an approval, so that it ends the job. What a handler keeps and does not come to wait for is
no mistake: it may return before, or an error may end what was to wait.
"""

import inspect
from abc import abstractmethod
from collections.abc import Coroutine, Generator
from types import FrameType
from typing import Any, Final, TypeVar

from asyncjob.app.errors import StepError

T = TypeVar("T")

_OURS: Final = "asyncjob."
"""How the names of modules begin that are not the handler's."""


class Forgotten:
    """The waits of one attempt that were dropped where they were asked for; from any thread."""

    def __init__(self) -> None:
        self._waits: list[str] = []

    def note(self, what: str) -> None:
        """Record a wait that was dropped."""
        self._waits.append(what)

    def check(self) -> None:
        """Raise StepError if there is one."""
        for what in self._waits:
            raise StepError(
                f"{what} was never awaited: `await` it, or call `.result()` in a sync handler"
            )


class WaitingCall(Coroutine[Any, Any, T]):
    """A wait that is asked for.

    A coroutine as well as an awaitable, so that `asyncio.create_task` takes it.
    """

    _forgotten: Forgotten | None = None
    _is_taken = False
    _what = ""
    _running: Generator[Any, Any, T] | None = None
    _asked_at: tuple[int, int] | None = None

    def expect(self, what: str, forgotten: Forgotten | None) -> None:
        """Have it recorded there if the line that asks for this drops it."""
        self._what, self._forgotten = what, forgotten
        self._asked_at = _place_of(inspect.currentframe())

    @abstractmethod
    def _wait(self) -> Coroutine[Any, Any, T]:
        """Return what waits."""

    def mark_taken(self) -> None:
        """Record that somebody waits for it, or has done so."""
        self._is_taken = True

    def __await__(self) -> Generator[Any, Any, T]:
        """Return once the wait is over; the handler may end here, to be run again then."""
        self.mark_taken()
        return self._wait().__await__()

    def __bool__(self) -> bool:
        """Refuse: who asks whether it is true has forgotten to wait for it."""
        raise StepError(
            f"{self._what or 'a wait'} is asked whether it is true, and not awaited: `await` it, "
            "or call `.result()` in a sync handler"
        )

    def send(self, value: Any) -> Any:
        """Go on, as the coroutine of a task."""
        return self._begun().send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error where it waits, as the coroutine of a task."""
        return self._begun().throw(*error)

    def close(self) -> None:
        """End it, as the coroutine of a task."""
        self.mark_taken()
        if self._running is not None:
            self._running.close()

    def _begun(self) -> Generator[Any, Any, T]:
        if self._running is None:
            self._running = self.__await__()
        return self._running

    def __del__(self) -> None:
        """Record that it was dropped by the line that has asked for it."""
        if self._is_taken or self._forgotten is None:
            return
        if _place_of(inspect.currentframe()) == self._asked_at:
            self._forgotten.note(self._what)


def _place_of(frame: FrameType | None) -> tuple[int, int] | None:
    """Return where the handler is: its frame, which is no other's while it runs, and the line."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_OURS):
        frame = frame.f_back
    return None if frame is None else (id(frame), frame.f_lineno)
