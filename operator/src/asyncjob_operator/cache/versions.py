"""Which version of each object is the newest seen, and how far the watch of jobs has come.

Watches, lists, live reads and the answers to writes come in any order: what is older than what is
known must replace nothing, and bring nothing back that was deleted.
"""

from typing import Final, Generic, TypeVar

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.cache.jobs import is_newer

K = TypeVar("K")

MAX_REMEMBERED_DELETED: Final = 10_000
"""Of so many objects that are gone the last version is known: answers are late by seconds."""


class VersionTracker(Generic[K]):
    """Newest versions by key; a name that is used again has a newer version than it ever had."""

    def __init__(self) -> None:
        self._newest: dict[K, str] = {}
        self._deleted: dict[K, str] = {}

    def accept(self, key: K, version: str) -> bool:
        """Take an object as it was then; return whether that is newer than all seen of it."""
        before = self._newest.get(key) or self._deleted.get(key)
        if before is not None and version and not is_newer(version, before):
            return False
        self._deleted.pop(key, None)
        self._newest[key] = version
        return True

    def record_deleted(self, key: K) -> None:
        """Take that there is no such object any more."""
        before = self._newest.pop(key, None)
        if before is not None:
            self._deleted[key] = before
            if len(self._deleted) > MAX_REMEMBERED_DELETED:
                del self._deleted[next(iter(self._deleted))]


class WatchPosition:
    """By namespace. Events of one watch come in the order of their versions."""

    def __init__(self) -> None:
        self._newest: dict[str, str] = {}

    def observe(self, obj: JsonObject) -> None:
        """Take the job of an event of the watch, and of nothing else."""
        meta = child(obj, "metadata")
        namespace, version = text(meta, "namespace"), text(meta, "resourceVersion")
        if is_newer(version, self._newest.get(namespace, "0")):
            self._newest[namespace] = version

    def has_reached(self, namespace: str, version: str) -> bool:
        """Return whether all that was written up to this version has been seen."""
        newest = self._newest.get(namespace, "")
        comparable = newest.isdecimal() and version.isdecimal()
        return comparable and not is_newer(version, newest)
