"""A JSON value level by level: the value, then what is in it, then what is in that.

Each level takes a few calls in C. A call in Python for each value of a large payload would hold an
event loop for seconds.
"""

from collections.abc import Iterable, Iterator
from itertools import chain


def iter_levels(value: object) -> Iterator[list[object]]:
    """Yield the values of each level, from the outermost on."""
    level = [value]
    while level:
        yield level
        holders = [one for one in level if isinstance(one, dict | list)]
        level = list(chain.from_iterable(map(_children_of, holders)))


def types_in(level: list[object]) -> set[type]:
    """Return the types of the values of one level."""
    return set(map(type, level))


def _children_of(container: dict[object, object] | list[object]) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else container
