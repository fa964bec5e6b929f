"""All jobs of one namespace, newest first, as the watch shows them.

Fed by lists, the watch and answers to our own writes, in any order: an older version never replaces
a newer one.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube.watch import WatchEvent
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.choosing import Place
from asyncjob_gateway.cache.entry import Entry, version_of
from asyncjob_gateway.cache.feed import Feed
from asyncjob_gateway.cache.progress import Progress
from asyncjob_gateway.cache.shaped import entry_in

WAITING: Final = (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING)
"""Phases that `maxQueued` of a queue counts."""

_GONE_KEPT: Final = 1024


class JobCache:
    """Jobs by UID, and their order. `feed` hears of every change, `progress` how far they go."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.progress = Progress()
        self.synced = False
        self.counts: Counter[tuple[str, Phase]] = Counter()
        self._entries: dict[str, Entry] = {}
        self._order: list[Place] = []
        self._gone: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the whole collection anew; whoever follows is told to list again."""
        entries = list(filter(None, map(entry_in, objects)))
        self._entries = {entry.summary.uid: entry for entry in entries}
        self._order = sorted(entry.place for entry in entries)
        self.counts = Counter((entry.summary.queue, entry.summary.phase) for entry in entries)
        self.synced = True
        self.feed.begin_anew()
        self.progress.reach(self.feed.floor)

    def apply(self, event: WatchEvent) -> None:
        """Take one change that the watch shows; it is handed on, whatever is known already."""
        if event.type == "DELETED":
            self._lose(event.object)
        else:
            self._change(event.object)
        self.progress.reach(version_of(event.resource_version))

    def wrote(self, obj: JsonObject) -> None:
        """Take the answer to a write of our own, so that lists have it before the watch shows it.

        It is not handed on: changes are, one after the other, as the watch shows them.
        """
        entry = entry_in(obj)
        if entry and self.synced and entry.summary.uid not in self._gone:
            self._keep(entry)

    def newest(self, after: Place | None = None) -> Iterator[Entry]:
        """Yield the jobs, newest first, beginning after a place."""
        end = len(self._order) if after is None else bisect_left(self._order, after)
        for index in range(end - 1, -1, -1):
            yield self._entries[self._order[index][1]]

    def waiting(self, queue: str) -> int:
        """Return how many jobs of a queue wait to be run."""
        return sum(self.counts[queue, phase] for phase in WAITING)

    def _change(self, obj: JsonObject) -> None:
        entry = entry_in(obj)
        if entry:
            self._keep(entry)
            self.feed.changed(entry)

    def _keep(self, entry: Entry) -> None:
        uid = entry.summary.uid
        before = self._entries.get(uid)
        if before and before.version >= entry.version:
            return
        if before is None:
            insort(self._order, entry.place)
        self._count(before, -1)
        self._count(entry, 1)
        self._entries[uid] = entry

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
