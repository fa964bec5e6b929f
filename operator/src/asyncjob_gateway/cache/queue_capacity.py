"""Capacity of queues with a `maxQueued`, while several replicas of the gateway fill them.

Each replica counts what the watch shows and what it has created itself, and sees what the others
create a moment later; so it may run ahead of the watch by a share of the remaining capacity only,
and by one job where little is left. Once the watch shows one of its jobs, it has shown all that was
created before. So R replicas exceed a small limit by at most R - 1 jobs, and a large one as well
unless a replica's requests or watch take longer than the others need to fill all that is left.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from asyncjob_gateway.cache.jobs import JobCache

AHEAD_SHARE: Final = 8
"""Part of the room that a replica may take before the watch has shown it: up to this many replicas
together do not go beyond the limit while there is more than one job's room for each.
"""

AHEAD_FROM: Final = 64
"""Below this room a replica creates one job at a time: of two requests that took long while the
others filled what was left, the second would go beyond the limit as well.
"""

WATCH_WAIT_SECONDS: Final = 2.0
"""How long the watch is waited for: it usually takes a few milliseconds."""


@dataclass(slots=True, eq=False)
class CapacityHold:
    """Room for one job; `version` is what it was created under, 0 until it is.

    Compared by identity: all that are under way look the same, and each gives back its own.
    """

    version: int = 0


class QueueCapacity:
    """The room in the queues of one namespace."""

    def __init__(self, jobs: JobCache) -> None:
        self._jobs = jobs
        self._holds: dict[str, list[CapacityHold]] = {}

    @asynccontextmanager
    async def hold(self, queue: str, limit: int) -> AsyncIterator[CapacityHold | None]:
        """Hold room for one job while it is created; None where there is none.

        The job's version, written into the place, keeps it until the watch has shown the job.
        """
        if not await self._wait_for_capacity(queue, limit):
            yield None
            return
        place = CapacityHold()
        self._holds.setdefault(queue, []).append(place)
        try:
            yield place
        finally:
            if not place.version:
                self._holds[queue].remove(place)
            self._jobs.observed.wake()

    def is_full(self, queue: str, limit: int) -> bool:
        """Return whether no other job may be created."""
        return self._remaining(queue, limit) <= 0

    async def _wait_for_capacity(self, queue: str, limit: int) -> bool:
        """Wait for the watch where this replica has run ahead of it far enough."""
        try:
            async with asyncio.timeout(WATCH_WAIT_SECONDS):
                while self._is_ahead_of_watch(queue, limit):
                    await self._jobs.observed.wait_for_change()
        except TimeoutError:
            return False
        return not self.is_full(queue, limit)

    def _is_ahead_of_watch(self, queue: str, limit: int) -> bool:
        seen = self._jobs.observed.version
        unseen = [one for one in self._holds.get(queue, ()) if not 0 < one.version <= seen]
        if unseen:
            self._holds[queue] = unseen
        else:
            self._holds.pop(queue, None)
        left = self._remaining(queue, limit)
        allowed = left // AHEAD_SHARE if left >= AHEAD_FROM else 1
        return left > 0 and len(unseen) >= allowed

    def _remaining(self, queue: str, limit: int) -> int:
        """Return how many more jobs there is room for; those created here are in the cache."""
        under_way = sum(not one.version for one in self._holds.get(queue, ()))
        return limit - self._jobs.waiting_count(queue) - under_way
