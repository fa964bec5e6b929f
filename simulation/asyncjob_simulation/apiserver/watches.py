"""A watch: what is there, what changes, and bookmarks, as lines that a client reads.

Knows no event loop: who sends asks for lines when `on_change` is called or a bookmark is due.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from asyncjob_simulation.apiserver.encoding import encode
from asyncjob_simulation.apiserver.errors import StatusError
from asyncjob_simulation.apiserver.forms import Form
from asyncjob_simulation.apiserver.selectors import Predicate
from asyncjob_simulation.apiserver.storage import Change, Collection

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One event as it is sent."""

    type: str
    version: int
    data: bytes


class Watch:
    """One client's view of a collection from a place in its log on."""

    def __init__(
        self,
        collection: Collection,
        form: Form,
        selects: Predicate,
        *,
        namespace: str,
        place: int,
        version: int = 0,
        has_bookmarks: bool = False,
        initial: Sequence[Object] | None = None,
        selector: str = "",
    ) -> None:
        self._collection = collection
        self._form = form
        self._selects = selects
        self._namespace = namespace
        self._place = place
        self._version = version
        self._has_bookmarks = has_bookmarks
        self._initial = initial
        self._cache_key = f"{form.name}/{selector}"
        self._headed = False
        self.is_open = True

    def subscribe(self, on_change: Callable[[], None]) -> None:
        """Call this after each change until the watch is closed."""
        self._collection.listeners[on_change] = None

    def close(self, on_change: Callable[[], None]) -> None:
        """End the watch."""
        self.is_open = False
        self._collection.listeners.pop(on_change, None)

    def lines(self) -> Iterator[Line]:
        """Yield what has come since the last time."""
        initial, self._initial = self._initial, None
        if initial is not None:
            for obj in initial:
                yield self._line("ADDED", int(obj["metadata"]["resourceVersion"]), obj, None)
            if self._has_bookmarks:
                yield self.bookmark(self._version, ends_initial=True)
        try:
            changes = self._collection.changes_from(self._place)
        except StatusError as error:
            yield self.error(error)
            return
        self._place += len(changes)
        for change in changes:
            if self._namespace and change.key[0] != self._namespace:
                continue
            event = self._event(change)
            if event is not None:
                yield self._line(event[0], change.version, event[1], change)

    def bookmark(self, version: int, *, ends_initial: bool = False) -> Line:
        """Return a bookmark: all up to this version has been sent."""
        obj = self._form.bookmark(version, ends_initial=ends_initial)
        return self._line("BOOKMARK", version, obj, None)

    def error(self, error: StatusError) -> Line:
        """Return the last event of a watch that cannot go on."""
        self.is_open = False
        data = encode({"type": "ERROR", "object": error.status()}) + b"\n"
        return Line("ERROR", 0, data)

    def _event(self, change: Change) -> tuple[str, Object] | None:
        """Return the event as this watch sees it: what leaves the selection is deleted there."""
        was = change.old is not None and self._selects(change.old)
        is_there = change.new is not None and self._selects(change.new)
        if is_there and change.new is not None:
            return ("MODIFIED" if was else "ADDED"), change.new
        if was and change.old is not None:
            metadata = {**change.old["metadata"], "resourceVersion": str(change.version)}
            return "DELETED", {**change.old, "metadata": metadata}
        return None

    def _line(self, type_: str, version: int, obj: Object, change: Change | None) -> Line:
        is_first, self._headed = not self._headed, True
        if change is None or is_first:
            return Line(type_, version, self._form.event(type_, obj, is_first=is_first))
        key = f"{type_}/{self._cache_key}"
        data = change.lines.get(key)
        if data is None:
            data = change.lines[key] = self._form.event(type_, obj, is_first=False)
        return Line(type_, version, data)
