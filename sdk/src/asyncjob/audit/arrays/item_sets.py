"""Sets of item numbers as ranges, with the arithmetic that the rules of arrays take.

The operator has its own; an error there must not hide here.
"""

from collections.abc import Iterable
from typing import Final

_SHOWN: Final = 3

ItemSet = tuple[tuple[int, int], ...]
"""First and last item of each range, sorted; no two ranges touch."""


def read_items(notation: str) -> ItemSet:
    """Return what interval notation such as `17,400-402` names. Raises ValueError."""
    found = []
    for part in notation.split(",") if notation else ():
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise ValueError(f"{notation[:40]!r} is not interval notation")
        found.append((int(first), int(last or first)))
    if any(last < first for first, last in found):
        raise ValueError(f"{notation[:40]!r} has a range that ends before it begins")
    return joined([found])


def items_between(first: int, end: int) -> ItemSet:
    """Return the items from the first to before the end."""
    return ((first, end - 1),) if first < end else ()


def joined(sets: Iterable[Iterable[tuple[int, int]]]) -> ItemSet:
    """Return what is in any of them."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(one for ranges in sets for one in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def without(items: ItemSet, gone: ItemSet) -> ItemSet:
    """Return the items that are not among the others."""
    left, at = [], 0
    for first, last in items:
        begin = first
        while at < len(gone) and gone[at][1] < begin:
            at += 1
        over = at
        while over < len(gone) and gone[over][0] <= last:
            if gone[over][0] > begin:
                left.append((begin, gone[over][0] - 1))
            begin = gone[over][1] + 1
            over += 1
        if begin <= last:
            left.append((begin, last))
    return tuple(left)


def number_of(items: ItemSet) -> int:
    """Return how many there are."""
    return sum(last - first + 1 for first, last in items)


def shown(items: ItemSet) -> str:
    """Return the first few ranges for a message."""
    parts = [f"{first}" if first == last else f"{first}-{last}" for first, last in items[:_SHOWN]]
    return ",".join(parts) + (",…" if len(items) > _SHOWN else "")
