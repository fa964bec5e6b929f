"""Gives the other tasks of an event loop their turn in the midst of long work of small steps."""

from asyncio import get_running_loop, sleep
from typing import Final

HELD_SECONDS: Final = 0.02
"""For so long the loop may be held. Steps differ too much in cost to count them instead."""


class Turns:
    """One stretch of work in the running event loop."""

    def __init__(self) -> None:
        self._clock = get_running_loop().time
        self._until = self._clock() + HELD_SECONDS

    async def give(self) -> None:
        """Let others go first if it has been long; call it after each small step."""
        if self._clock() >= self._until:
            await sleep(0)
            self._until = self._clock() + HELD_SECONDS
