"""What kopf is shown of objects: nothing that it cannot read, and nothing large that nobody needs.

kopf parses with Python's own parser, which gives up at a thousand levels, and keeps each object for
a while. How large and how deep payloads and templates are, their authors decide, and the API server
takes any depth in the `managedFields` that those who may change an object send along. None of that
is kept in the operator's caches: what it acts on it reads live.
"""

from typing import Final

import orjson

from asyncjob.deep_json import loads
from asyncjob.json_types import JsonObject, as_object, child, items
from asyncjob.lifecycle.signals import signals_of

MAX_PASSED_BYTES: Final = 16 * 1024
MAX_PASSED_BRACKETS: Final = 200
"""A line within these bounds is passed as it is: its brackets are too few for too many levels."""

_NOT_SHOWN: Final = {
    "metadata": ("managedFields",),
    "spec": ("payload", "jobTemplate"),
    "status": ("checkpoint", "result", "steps"),
}
"""All the free JSON that there is, but for that of signals, of which the names are read."""


def readable_page(body: bytes) -> JsonObject:
    """Return a page of a list."""
    page = as_object(loads(body))
    for obj in items(page, "items"):
        _reduce(as_object(obj))
    return page


LIST_AGAIN: Final = b'{"type":"ERROR","object":{"kind":"Status","code":410}}'
"""After this error kopf lists again, and goes on from there. After any other it would end."""


def is_error(line: bytes) -> bool:
    """Return whether a watch says that it cannot go on."""
    return line.startswith(b'{"type":"ERROR"')


def readable_line(line: bytes) -> bytes:
    """Return an event of a watch as text."""
    if is_error(line):
        return LIST_AGAIN
    if len(line) <= MAX_PASSED_BYTES and line.count(b"{") + line.count(b"[") <= MAX_PASSED_BRACKETS:
        return line
    event = as_object(loads(line))
    _reduce(child(event, "object"))
    return orjson.dumps(event)


def _reduce(obj: JsonObject) -> None:
    for part, names in _NOT_SHOWN.items():
        fields = obj.get(part)
        if isinstance(fields, dict):
            for name in names:
                fields.pop(name, None)
    for signal in signals_of(child(obj, "spec")).values():
        if isinstance(signal, dict):
            signal.pop("payload", None)
