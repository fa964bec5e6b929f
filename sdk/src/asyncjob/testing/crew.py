"""The attempts under way, and when it is time for time to pass: when all of them only sleep."""

import asyncio
from collections.abc import Iterator
from typing import Final

from asyncjob.testing.attempt import Attempt
from asyncjob.testing.errors import StuckError

_LOOP_TURNS: Final = 20
"""Turns of the event loop in which a handler that need not wait for anything gets on."""


class RunningAttempts:
    """Attempts by the UID of their job. `stall_seconds` is in real seconds."""

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._attempts: dict[str, Attempt] = {}
        self._hung: set[Attempt] = set()
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._attempts.values()))

    def __len__(self) -> int:
        return len(self._attempts)

    def get(self, uid: str) -> Attempt | None:
        """Return the attempt at a job, if one is under way."""
        return self._attempts.get(uid)

    def add(self, attempt: Attempt) -> None:
        """Take note of an attempt that begins."""
        self._attempts[attempt.job.uid] = attempt

    def remove(self, attempt: Attempt) -> None:
        """Take note that one has ended."""
        del self._attempts[attempt.job.uid]

    def wake(self) -> None:
        """Take that a handler has done something; called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def run_handlers(self, *, lenient: bool) -> bool:
        """Let handlers work until one has something to tell; False once all of them only sleep.

        Raises StuckError, unless lenient, where one does neither for too long.
        """
        while self._attempts:
            self._woken.clear()
            for attempt in self:
                attempt.resume()
            await _run_loop_turns()
            if any(attempt.has_event for attempt in self):
                return True
            busy = self._busy()
            if not busy:
                return False
            if not await self._wait():
                self._mark_hung(busy, lenient=lenient)
        return False

    def _busy(self) -> set[Attempt]:
        """Return who neither sleeps nor is known to hang."""
        awake = {attempt for attempt in self if not attempt.is_sleeping}
        self._hung &= awake
        return awake - self._hung

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(self._stall_seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True

    def _mark_hung(self, busy: set[Attempt], *, lenient: bool) -> None:
        """Let time pass for handlers that hang, if lenient, and that ignore their stop."""
        stuck = sorted(attempt.job.name for attempt in busy if attempt.stopped is None)
        if stuck and not lenient:
            raise StuckError(
                f"the handlers of {', '.join(stuck)} have neither ended nor slept for "
                f"{self._stall_seconds} real seconds: let what they wait for happen, or let time "
                "pass "
                "with advance(seconds)"
            )
        self._hung |= busy


async def _run_loop_turns() -> None:
    for _ in range(_LOOP_TURNS):
        await asyncio.sleep(0)
