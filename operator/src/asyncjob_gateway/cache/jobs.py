"""All jobs of one namespace, newest first, as the watch shows them.

Fed by lists, the watch and answers to our own writes, in any order: an older version never replaces
a newer one.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import structlog

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube.watch import WatchEvent
from asyncjob.lifecycle.phases import Phase
from asyncjob_gateway.cache.entry import Entry, Place, entry_of, version_of
from asyncjob_gateway.events.feed import Feed

log = structlog.get_logger()

WAITING: Final = (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING)
"""Phases that `maxQueued` of a queue counts."""

_GONE_KEPT: Final = 1024


class JobCache:
    """Jobs by UID, and their order. `feed` hears of every change."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.synced = False
        self.counts: Counter[tuple[str, Phase]] = Counter()
        self._entries: dict[str, Entry] = {}
        self._order: list[Place] = []
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the whole collection anew; whoever follows is told to list again."""
        self._entries, self._order, self.counts = {}, [], Counter()
        for obj in objects:
            self._keep(obj)
        self._order.sort()
        self.synced = True
        self.feed.begin_anew()

    def apply(self, event: WatchEvent) -> None:
        """Take one change."""
        if event.type == "DELETED":
            self._lose(event.object)
        else:
            self.saw(event.object)

    def saw(self, obj: JsonObject) -> None:
        """Take a job as it is now, if that is news."""
        uid = text(child(obj, "metadata"), "uid")
        known = self._entries.get(uid)
        version = version_of(text(child(obj, "metadata"), "resourceVersion"))
        if uid in self._gone or (known and known.version >= version):
            return
        entry = self._keep(obj)
        if entry and known is None:
            insort(self._order, self._order.pop())
        if entry:
            self.feed.changed(entry)

    def newest(self, after: Place | None = None) -> Iterator[Entry]:
        """Yield the jobs, newest first, beginning after a place."""
        end = len(self._order) if after is None else bisect_left(self._order, after)
        for index in range(end - 1, -1, -1):
            yield self._entries[self._order[index][1]]

    def waiting(self, queue: str) -> int:
        """Return how many jobs of a queue wait to be run."""
        return sum(self.counts[queue, phase] for phase in WAITING)

    def _keep(self, obj: JsonObject) -> Entry | None:
        try:
            entry = entry_of(obj)
        except ValueError as error:  # a phase that this version does not know
            log.warning("job not readable", error=str(error))
            return None
        uid = entry.summary.uid
        before = self._entries.get(uid)
        self._count(before, -1)
        self._count(entry, 1)
        self._entries[uid] = entry
        if before is None:
            self._order.append(entry.place)
        return entry

    def _lose(self, obj: JsonObject) -> None:
        uid = text(child(obj, "metadata"), "uid")
        self._gone[uid] = None  # an answer to an earlier write may still be under way
        if len(self._gone) > _GONE_KEPT:
            del self._gone[next(iter(self._gone))]
        entry = self._entries.pop(uid, None)
        if entry:
            self._count(entry, -1)
            del self._order[bisect_left(self._order, entry.place)]
            version = version_of(text(child(obj, "metadata"), "resourceVersion"))
            self.feed.deleted(entry, version)

    def _count(self, entry: Entry | None, by: int) -> None:
        if entry:
            self.counts[entry.summary.queue, entry.summary.phase] += by


