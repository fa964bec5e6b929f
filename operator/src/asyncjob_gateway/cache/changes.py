"""Changes of the jobs of one namespace, buffered and passed to subscribers.

Bounded in every direction. Each change has the resourceVersion under which it was written, the same
on all replicas: a subscriber that returns with the last version it saw gets what it missed, if that
is still buffered, and otherwise has to list again, as does one that reads too slowly.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from asyncjob_gateway.cache.entries import CachedJob


class ObservedVersion:
    """The newest version seen, for those who wait for one of their own writes."""

    def __init__(self) -> None:
        self.version = 0
        self._changed: asyncio.Event | None = None

    def advance(self, version: int) -> None:
        """Note that all up to this version has been seen."""
        self.version = max(self.version, version)
        self.wake()

    def wake(self) -> None:
        """Have all who wait look again."""
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()

    async def wait_for_change(self) -> None:
        """Wait until there is something to look at."""
        if self._changed is None:
            self._changed = asyncio.Event()
        await self._changed.wait()


MAX_BUFFERED_CHANGES: Final = 4096
"""Changes kept for those who come back."""

MAX_LAG: Final = 512
"""Changes that a follower may lag behind by."""


@dataclass(frozen=True, slots=True)
class JobChangeEvent:
    """A job as it is now, or, deleted, as it was last."""

    version: int
    job: CachedJob
    deleted: bool = False


ChangeFilter = Callable[[JobChangeEvent], bool]


class ChangeSubscription:
    """What one follower has not been given yet. `lost` is set where changes were dropped."""

    def __init__(self, matches: ChangeFilter) -> None:
        self.needs_resync = False
        self._matches = matches
        self._changes: deque[JobChangeEvent] = deque()
        self._available = asyncio.Event()

    def put(self, change: JobChangeEvent) -> None:
        """Note a change, or that there are too many."""
        if self.needs_resync or not self._matches(change):
            return
        if len(self._changes) >= MAX_LAG:
            self.drop_all()
            return
        self._changes.append(change)
        self._available.set()

    def drop_all(self) -> None:
        """Drop everything: the follower has to list again."""
        self._changes.clear()
        self.needs_resync = True
        self._available.set()

    async def wait(self, seconds: float) -> bool:
        """Return whether there is a change within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._available.wait()
        except TimeoutError:
            return False
        return True

    def drain(self) -> tuple[bool, list[JobChangeEvent]]:
        """Return whether changes were dropped, and those that came since."""
        lost, changes = self.needs_resync, list(self._changes)
        self.needs_resync = False
        self._changes.clear()
        self._available.clear()
        return lost, changes

    def wake(self) -> None:
        """End a wait: there is something else to see to."""
        self._available.set()


class ChangeBuffer:
    """The newest changes, and who follows."""

    def __init__(self) -> None:
        self.oldest_replayable = 0
        self._changes: deque[JobChangeEvent] = deque()
        self._subscriptions: set[ChangeSubscription] = set()

    @property
    def newest_version(self) -> int:
        """The version up to which everything is known here."""
        return max(self.oldest_replayable, self._changes[-1].version if self._changes else 0)

    def on_listed(self, version: int) -> None:
        """Record that the list that comes next has everything up to this version."""
        self.oldest_replayable = version

    def reset(self) -> None:
        """Forget all changes; everybody has to list again."""
        self._changes.clear()
        for follower in self._subscriptions:
            follower.drop_all()

    def publish(self, job: CachedJob) -> None:
        """Hand on a change."""
        self._append(JobChangeEvent(job.version, job))

    def publish_deleted(self, job: CachedJob, version: int) -> None:
        """Hand on that a job is gone."""
        self._append(JobChangeEvent(version, job, deleted=True))

    def wake_all(self) -> None:
        """End all waits."""
        for follower in self._subscriptions:
            follower.wake()

    @contextmanager
    def subscribe(
        self, matches: ChangeFilter, since: int | None = None
    ) -> Iterator[ChangeSubscription]:
        """Follow while inside, from now on or from after a version."""
        follower = ChangeSubscription(matches)
        self._replay(follower, since)
        self._subscriptions.add(follower)
        try:
            yield follower
        finally:
            self._subscriptions.discard(follower)

    def _replay(self, subscription: ChangeSubscription, since: int | None) -> None:
        if since is None:
            return
        if since < self.oldest_replayable:
            subscription.drop_all()
            return
        for change in self._changes:
            if change.version > since:
                subscription.put(change)

    def _append(self, change: JobChangeEvent) -> None:
        self._changes.append(change)
        if len(self._changes) > MAX_BUFFERED_CHANGES:
            self.oldest_replayable = max(self.oldest_replayable, self._changes.popleft().version)
        for follower in self._subscriptions:
            follower.put(change)
