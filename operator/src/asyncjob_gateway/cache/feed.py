"""Changes of the jobs of one namespace, handed to whoever follows. Bounded in every direction.

Each change has the resourceVersion that it was written under, the same on all replicas: who comes
back with the last one that it saw is given what it missed, if that is still known, and else is told
to list anew (`resync`), as is who reads too slowly.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from asyncjob_gateway.cache.entry import Entry

KEPT: Final = 4096
"""Changes kept for those who come back."""

AHEAD: Final = 512
"""Changes that a follower may lag behind by."""


@dataclass(frozen=True, slots=True)
class Change:
    """A job as it is now, or, deleted, as it was last."""

    version: int
    entry: Entry
    deleted: bool = False


Wanted = Callable[[Change], bool]


class Follower:
    """What one follower has not been given yet. `lost` is set where changes were dropped."""

    def __init__(self, wanted: Wanted) -> None:
        self.lost = False
        self._wanted = wanted
        self._changes: deque[Change] = deque()
        self._some = asyncio.Event()

    def take(self, change: Change) -> None:
        """Note a change, or that there are too many."""
        if self.lost or not self._wanted(change):
            return
        if len(self._changes) >= AHEAD:
            self.lose()
            return
        self._changes.append(change)
        self._some.set()

    def lose(self) -> None:
        """Drop everything: the follower has to list anew."""
        self._changes.clear()
        self.lost = True
        self._some.set()

    async def wait(self, seconds: float) -> bool:
        """Return whether there is something within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._some.wait()
        except TimeoutError:
            return False
        return True

    def given(self) -> tuple[bool, list[Change]]:
        """Return whether changes were dropped, and those that came since."""
        lost, changes = self.lost, list(self._changes)
        self.lost = False
        self._changes.clear()
        self._some.clear()
        return lost, changes

    def wake(self) -> None:
        """End a wait: there is something else to see to."""
        self._some.set()


class Feed:
    """The newest changes, and who follows."""

    def __init__(self) -> None:
        self.floor = 0
        self._changes: deque[Change] = deque()
        self._followers: set[Follower] = set()

    @property
    def newest(self) -> int:
        """The version up to which everything is known here."""
        return max(self.floor, self._changes[-1].version if self._changes else 0)

    def listed(self, version: int) -> None:
        """Take that everything up to this version is in the list that comes next."""
        self.floor = version

    def begin_anew(self) -> None:
        """Forget all changes; everybody has to list anew."""
        self._changes.clear()
        for follower in self._followers:
            follower.lose()

    def changed(self, entry: Entry) -> None:
        """Hand on a change."""
        self._hand_on(Change(entry.version, entry))

    def deleted(self, entry: Entry, version: int) -> None:
        """Hand on that a job is gone."""
        self._hand_on(Change(version, entry, deleted=True))

    def wake_all(self) -> None:
        """End all waits."""
        for follower in self._followers:
            follower.wake()

    @contextmanager
    def follow(self, wanted: Wanted, since: int | None = None) -> Iterator[Follower]:
        """Follow while inside, from now on or from after a version."""
        follower = Follower(wanted)
        self._catch_up(follower, since)
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    def _catch_up(self, follower: Follower, since: int | None) -> None:
        if since is None:
            return
        if since < self.floor:
            follower.lose()
            return
        for change in self._changes:
            if change.version > since:
                follower.take(change)

    def _hand_on(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > KEPT:
            self.floor = max(self.floor, self._changes.popleft().version)
        for follower in self._followers:
            follower.take(change)
