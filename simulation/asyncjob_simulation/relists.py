"""Which informers list their collection again, and whether they had to.

A list of everything is what an API server can bear least when it has just come back, and then all
informers want one. One whose watch breaks off goes on from the last version that it has seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asyncjob.kube.informer import MAX_WATCH_FAILURES

_CONTINUED: Final = "continue"
_PLACE: Final = frozenset(
    {"allowWatchBookmarks", "limit", "resourceVersion", "timeoutSeconds", "watch"}
)
"""Parameters that say from where on and how; the others say what is selected."""

Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""A process, a path, and what is selected of it."""


@dataclass(slots=True)
class _Since:
    """What has happened since an informer's last list."""

    watches: int = 0
    is_expired: bool = False


class Relists:
    """Judges the requests of processes whose informers watch from where they are.

    An operator compares with a list now and then on purpose, and so is none of them.
    """

    def __init__(self, on_broken: Callable[[str, str], object]) -> None:
        self._on_broken = on_broken
        self._since: dict[Key, _Since] = {}

    def on_list(self, process: str, path: str, query: Mapping[str, str]) -> None:
        """Judge a list; one that has failed, so that no watch came of it, may be repeated."""
        if _CONTINUED in query:
            return
        since = self._since.get(key := _key(process, path, query))
        if since is None:
            return
        if since.watches and not since.is_expired and since.watches < MAX_WATCH_FAILURES:
            tries = f"after {since.watches} watches since the list before, without a 410"
            self._on_broken(process, f"lists {path} again {tries}")
        self._since[key] = _Since()

    def on_watch(self, process: str, path: str, query: Mapping[str, str]) -> None:
        """Take a watch into account that goes on from a version."""
        if query.get("resourceVersion"):
            self._since.setdefault(_key(process, path, query), _Since()).watches += 1

    def on_expired(self, process: str, path: str, query: Mapping[str, str]) -> None:
        """Take into account that the place of a watch is lost."""
        self._since.setdefault(_key(process, path, query), _Since()).is_expired = True


def _key(process: str, path: str, query: Mapping[str, str]) -> Key:
    selection = ((name, value) for name, value in query.items() if name not in _PLACE)
    return process, path, tuple(sorted(selection))
