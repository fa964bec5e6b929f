"""How long an API server takes to answer next to nothing, all the while.

Where that is long, the machine is too busy for what the parts promise.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from asyncjob.errors import ApiError

_BETWEEN_SECONDS: Final = 0.5


class AnswerTimes:
    """Asks again and again."""

    def __init__(
        self,
        ask: Callable[[], Awaitable[object]],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._pause = pause
        self._waiting_since: float | None = None
        self._answers: list[tuple[float, float]] = []

    async def measure(self) -> None:
        """Ask until cancelled."""
        while True:
            self._waiting_since = asked_at = self._clock()
            with suppress(ApiError):
                await self._ask()
            self._waiting_since = None
            answered_at = self._clock()
            self._answers.append((answered_at, answered_at - asked_at))
            await self._pause(_BETWEEN_SECONDS)

    def slowest(self, since: float) -> float:
        """Return how long an answer has taken, at most, that came since then or is to come."""
        taken = [seconds for at, seconds in self._answers if at >= since]
        if self._waiting_since is not None:
            taken.append(self._clock() - self._waiting_since)
        return max(taken, default=0.0)
