"""Which version of each object is the newest seen, and which objects are gone.

Watches, lists, live reads and the answers to writes come in any order: what is older than what is
known must replace nothing, and bring nothing back that was deleted.
"""

from typing import Final, Generic, TypeVar

from asyncjob_operator.observe.store import is_newer

K = TypeVar("K")

REMEMBERED: Final = 10_000
"""Of so many objects that are gone the last version is known: answers are late by seconds."""


class Versions(Generic[K]):
    """Newest versions by key; a name that is used again has a newer version than it ever had."""

    def __init__(self) -> None:
        self._seen: dict[K, str] = {}
        self._gone: dict[K, str] = {}

    def is_news(self, key: K, version: str) -> bool:
        """Take an object as it was then; return whether that is newer than all seen of it."""
        before = self._seen.get(key) or self._gone.get(key)
        if before is not None and version and not is_newer(version, before):
            return False
        self._gone.pop(key, None)
        self._seen[key] = version
        return True

    def gone(self, key: K) -> None:
        """Take that there is no such object any more."""
        before = self._seen.pop(key, None)
        if before is not None:
            self._gone[key] = before
            if len(self._gone) > REMEMBERED:
                del self._gone[next(iter(self._gone))]
