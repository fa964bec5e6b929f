"""Objects in versions: one counter for all, a log for each resource, and what watches read of it.

Objects are never changed in place: a write stores another one. So a version of the past is the
present with the log undone, and nothing is copied for it.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from asyncjob_simulation.apiserver.errors import expired

Object = dict[str, Any]
Key = tuple[str, str]

FIRST_VERSION: Final = 100
COMPACTION_SECONDS: Final = 300.0
"""How long a real API server keeps versions that are no longer the newest."""


@dataclass(slots=True, eq=False)
class Change:
    """One write: what was there before it, and what is there now."""

    version: int
    time: float
    key: Key
    old: Object | None
    new: Object | None
    lines: dict[str, bytes] = field(default_factory=dict)
    """What watches send of it, by type and form: the same for all who ask alike."""


@dataclass(slots=True)
class Collection:
    """The objects of one resource, and their changes after version `compacted`."""

    objects: dict[Key, Object] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    log: list[Change] = field(default_factory=list)
    compacted: int = 0
    """The newest version that a watch can no longer go on from."""

    dropped: int = 0
    """How many changes have been taken off the log: a watch's place counts them, too."""

    listeners: dict[Callable[[], None], None] = field(default_factory=dict)

    def at(self, version: int) -> dict[Key, Object]:
        """Return the objects as of a version; raises StatusError if that is forgotten."""
        if version < self.compacted:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
        found = self.objects
        begin = bisect_right(self.log, version, key=_version)
        if begin == len(self.log):
            return found
        found = dict(found)
        for change in reversed(self.log[begin:]):
            if change.old is None:
                found.pop(change.key, None)
            else:
                found[change.key] = change.old
        return found

    def place_after(self, version: int) -> int:
        """Return the place in the log after a version; -1 if that is forgotten."""
        if version < self.compacted:
            return -1
        return self.dropped + bisect_right(self.log, version, key=_version)

    def changes_from(self, place: int) -> list[Change]:
        """Return the changes from a place on; raises StatusError if they are forgotten."""
        if place < self.dropped:
            raise expired(f"too old resource version: ({self.compacted})")
        return self.log[place - self.dropped :]

    @property
    def end(self) -> int:
        """Return the place after the newest change."""
        return self.dropped + len(self.log)


def _version(change: Change) -> int:
    return change.version


class Storage:
    """All collections. `clock` gives epoch seconds, for the age of what is forgotten."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._collections: dict[tuple[str, str], Collection] = {}
        self._next_compaction = clock() + COMPACTION_SECONDS
        self.version = FIRST_VERSION

    def copy_from(self, other: "Storage") -> None:
        """Take over all objects of another storage, and forget how they came to be."""
        self.version = other.version
        self._collections = {
            resource: Collection(
                dict(one.objects), list(one.keys), compacted=other.version, dropped=one.end
            )
            for resource, one in other
        }

    def collection(self, resource: tuple[str, str]) -> Collection:
        """Return the collection of a resource."""
        found = self._collections.get(resource)
        if found is None:
            found = self._collections[resource] = Collection()
        return found

    def __iter__(self) -> Iterator[tuple[tuple[str, str], Collection]]:
        return iter(list(self._collections.items()))

    def get(self, resource: tuple[str, str], key: Key) -> Object | None:
        """Return an object, or None."""
        return self.collection(resource).objects.get(key)

    def put(self, resource: tuple[str, str], key: Key, obj: Object) -> Object:
        """Store an object as the next version, and return it with that version."""
        collection = self.collection(resource)
        self.version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        old = collection.objects.get(key)
        if old is None:
            insort(collection.keys, key)
        collection.objects[key] = stored
        self._record(collection, key, old, stored)
        return stored

    def remove(self, resource: tuple[str, str], key: Key) -> Object:
        """Remove an object, which is a version as well, and return it with that."""
        collection = self.collection(resource)
        self.version += 1
        old = collection.objects.pop(key)
        del collection.keys[bisect_left(collection.keys, key)]
        self._record(collection, key, old, None)
        return {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}

    def _record(
        self, collection: Collection, key: Key, old: Object | None, new: Object | None
    ) -> None:
        now = self._clock()
        collection.log.append(Change(self.version, now, key, old, new))
        if now >= self._next_compaction:
            self._next_compaction = now + COMPACTION_SECONDS
            self.compact(before=now - COMPACTION_SECONDS)
        for listener in list(collection.listeners):
            listener()

    def compact(self, before: float | None = None) -> None:
        """Forget the versions that were replaced before a time; None: all but the newest."""
        for _, collection in self:
            log = collection.log
            cut = len(log)
            if before is not None:
                cut = bisect_left(log, before, key=lambda change: change.time)
            elif self.version > collection.compacted:
                collection.compacted = self.version
            if cut:
                collection.compacted = max(collection.compacted, log[cut - 1].version)
                collection.dropped += cut
                del log[:cut]
