"""Server-sent events, taken from a stream of bytes."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import orjson

from asyncjob.json_types import Json, JsonObject

_TEXT_FIELDS: Final = frozenset({"event", "id"})


@dataclass(slots=True)
class EventStream:
    """Puts bytes together to events: `event`, `id` and `data`, which is JSON.

    Only line feeds and carriage returns end a line, whatever else Unicode holds for one. A field
    that nobody knows and data that is no JSON are left out; a comment is an event without a name.
    """

    ready: deque[JsonObject] = field(default_factory=deque)
    _rest: bytes = b""
    _fields: dict[str, str] = field(default_factory=dict)
    _data: list[str] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; what they complete is `ready`."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line.removesuffix(b"\r").decode(errors="replace"))

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            self._complete()
        elif not name:
            self.ready.append({"event": "", "data": None})
        elif name == "data":
            self._data.append(value)
        elif name in _TEXT_FIELDS:
            self._fields[name] = value

    def _complete(self) -> None:
        fields, data = self._fields, "\n".join(self._data)
        self._fields, self._data = {}, []
        try:
            value: Json = orjson.loads(data)
        except orjson.JSONDecodeError:
            return
        self.ready.append({"event": "message", **fields, "data": value})
