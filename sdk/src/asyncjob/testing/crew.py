"""The attempts under way, and when it is time for time to pass: when all of them only sleep."""

import asyncio
from collections.abc import Iterator
from typing import Final

from asyncjob.testing.attempt import Attempt
from asyncjob.testing.errors import StuckError

_TURNS: Final = 20
"""Turns of the event loop in which a handler that need not wait for anything gets on."""


class Crew:
    """Attempts by the UID of their job. `patience` is in real seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._attempts: dict[str, Attempt] = {}
        self._hung: set[Attempt] = set()
        self._stirred = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._attempts.values()))

    def __len__(self) -> int:
        return len(self._attempts)

    def of(self, uid: str) -> Attempt | None:
        """Return the attempt at a job, if one is under way."""
        return self._attempts.get(uid)

    def add(self, attempt: Attempt) -> None:
        """Take note of an attempt that begins."""
        self._attempts[attempt.job.uid] = attempt

    def remove(self, attempt: Attempt) -> None:
        """Take note that one has ended."""
        del self._attempts[attempt.job.uid]

    def stir(self) -> None:
        """Take that a handler has done something; called from any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stirred.set)

    async def work(self, *, lenient: bool) -> bool:
        """Let handlers work until one has something to tell; False once all of them only sleep.

        Raises StuckError, unless lenient, where one does neither for too long.
        """
        while self._attempts:
            self._stirred.clear()
            for attempt in self:
                attempt.go_on()
            await _turn()
            if any(attempt.has_news for attempt in self):
                return True
            busy = self._busy()
            if not busy:
                return False
            if not await self._wait():
                self._give_up(busy, lenient=lenient)
        return False

    def _busy(self) -> set[Attempt]:
        """Return who neither sleeps nor is known to hang."""
        awake = {attempt for attempt in self if not attempt.asleep}
        self._hung &= awake
        return awake - self._hung

    async def _wait(self) -> bool:
        try:
            async with asyncio.timeout(self._patience):
                await self._stirred.wait()
        except TimeoutError:
            return False
        return True

    def _give_up(self, busy: set[Attempt], *, lenient: bool) -> None:
        """Let time pass for handlers that hang, if lenient, and that ignore their stop."""
        stuck = sorted(attempt.job.name for attempt in busy if attempt.stopped is None)
        if stuck and not lenient:
            raise StuckError(
                f"the handlers of {', '.join(stuck)} have neither ended nor slept for "
                f"{self._patience} real seconds: let what they wait for happen, or let time pass "
                "with advance(seconds)"
            )
        self._hung |= busy


async def _turn() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
