"""A quick look at how large a result is, so that large ones are encoded off the event loop."""

from collections.abc import Iterable
from typing import Final

_MANY: Final = 2000
_LONG: Final = 64 * 1024


def looks_large(value: object) -> bool:
    """Return whether the value has many parts or long texts; looks at a bounded number of parts."""
    waiting: list[object] = [value]
    parts = length = 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str | bytes):
            length += len(item)
            continue
        inner = _parts_of(item)
        parts += len(inner)
        if parts > _MANY or length > _LONG:
            return True
        waiting.extend(inner)
    return length > _LONG


def _parts_of(item: object) -> list[object] | tuple[object, ...]:
    if isinstance(item, list | tuple):
        return item
    found: Iterable[object] = ()
    if isinstance(item, dict):
        found = item.values()
    elif isinstance(item, set | frozenset):
        found = item
    elif not isinstance(item, int | float | None):
        found = getattr(item, "__dict__", {}).values()
    return tuple(found)
