"""A quick look at how large a result is, so that large ones are encoded off the event loop."""

from collections.abc import Collection
from typing import Final

_MANY_PARTS: Final = 2000
_LONG_TEXT: Final = 64 * 1024

_SCALARS: Final = frozenset({int, float, bool, type(None)})


def looks_large(value: object) -> bool:
    """Return whether the value has many parts or long texts; looks at a bounded number of parts."""
    waiting: list[object] = [value]
    parts = length = 0
    for item in waiting:  # grows meanwhile
        kind = type(item)
        if kind in _SCALARS:
            continue
        if isinstance(item, str | bytes):
            length += len(item)
        else:
            inner = _parts_of(item)
            parts += len(inner)
            if parts <= _MANY_PARTS:
                waiting += inner
        if parts > _MANY_PARTS or length > _LONG_TEXT:
            return True
    return False


def _parts_of(item: object) -> Collection[object]:
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset):
        return item
    fields: dict[str, object] = getattr(item, "__dict__", {})
    return fields.values()
