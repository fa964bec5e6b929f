"""Gives the other tasks of an event loop their turn in the midst of long work of small steps."""

from asyncio import get_running_loop, sleep
from typing import Final

TIME_SLICE_SECONDS: Final = 0.02
"""For so long the loop may be held. Steps differ too much in cost to count them instead."""


class TimeSlice:
    """One stretch of work in the running event loop."""

    def __init__(self) -> None:
        self._clock = get_running_loop().time
        self._ends_at = self._clock() + TIME_SLICE_SECONDS

    async def yield_if_due(self) -> None:
        """Let others go first if it has been long; call it after each small step."""
        if self._clock() >= self._ends_at:
            await sleep(0)
            self._ends_at = self._clock() + TIME_SLICE_SECONDS
