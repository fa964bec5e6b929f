"""The newest version seen of each object, and the version that the watch of jobs has reached.

Watches, lists, live reads and the answers to writes arrive in any order: an older version must not
replace a newer one, nor bring back an object that was deleted.
"""

from typing import Final, Generic, TypeVar

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.cache.jobs import is_newer

K = TypeVar("K")

MAX_REMEMBERED_DELETED: Final = 10_000
"""Deleted objects whose last version is remembered: answers may be seconds late."""


class VersionTracker(Generic[K]):
    """Newest versions by key; a new object of a deleted one's name has a newer version."""

    def __init__(self) -> None:
        self._newest: dict[K, str] = {}
        self._deleted: dict[K, str] = {}

    def accept(self, key: K, version: str) -> bool:
        """Record a version of an object; return whether it is newer than all seen before."""
        newest = self._newest.get(key) or self._deleted.get(key)
        if newest is not None and version and not is_newer(version, newest):
            return False
        self._deleted.pop(key, None)
        self._newest[key] = version
        return True

    def is_newer_known(self, key: K, than: str) -> bool:
        """Return whether there is an object that is newer than this version."""
        newest = self._newest.get(key, "")
        return newest.isdecimal() and than.isdecimal() and is_newer(newest, than)

    def record_deleted(self, key: K, version: str = "") -> None:
        """Record that an object was deleted, be it one never seen: a list may still show it."""
        newest = self._newest.pop(key, None)
        newest = version or newest
        if newest is not None:
            self._deleted[key] = newest
            if len(self._deleted) > MAX_REMEMBERED_DELETED:
                del self._deleted[next(iter(self._deleted))]


class WatchPosition:
    """The newest version of each namespace; a watch reports events in the order of versions."""

    def __init__(self) -> None:
        self._newest: dict[str, str] = {}

    def observe(self, obj: JsonObject) -> None:
        """Record the version of a job from a watch event; lists and reads must not be passed."""
        meta = child(obj, "metadata")
        namespace, version = text(meta, "namespace"), text(meta, "resourceVersion")
        if is_newer(version, self._newest.get(namespace, "0")):
            self._newest[namespace] = version

    def has_reached(self, namespace: str, version: str) -> bool:
        """Return whether all that was written up to this version has been seen."""
        newest = self._newest.get(namespace, "")
        comparable = newest.isdecimal() and version.isdecimal()
        return comparable and not is_newer(version, newest)
