"""Sets of item numbers, kept as ranges and written in interval notation: `17,400-402`.

However many items an array has, what its status keeps of them are ranges, so its size depends on
how scattered the items are and not on how many.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

_NOTATION = re.compile(r"(?:[0-9]{1,10}(?:-[0-9]{1,10})?(?:,(?!$)|$))*")

_Range = tuple[int, int]
"""First and last item, both included."""


@dataclass(frozen=True, slots=True)
class ItemRanges:
    """A set of items; its ranges are sorted, and between two of them at least one is missing."""

    ranges: tuple[_Range, ...] = ()

    @classmethod
    def between(cls, first: int, end: int) -> "ItemRanges":
        """Return the items from `first` to before `end`."""
        return cls(((first, end - 1),)) if first < end else cls()

    @classmethod
    def of(cls, items: Iterable[int]) -> "ItemRanges":
        """Return the set of these items, which may be in any order."""
        return cls(_merged(sorted((item, item) for item in set(items))))

    @classmethod
    def parse(cls, notation: str) -> "ItemRanges":
        """Return what interval notation says. Raises ValueError for anything else.

        The ranges may be in any order and overlap: what a worker reports is only data.
        """
        if not _NOTATION.fullmatch(notation):
            raise ValueError(f"{notation[:40]!r} is not interval notation such as 17,400-402")
        found: list[_Range] = []
        for part in filter(None, notation.split(",")):
            first, _, last = part.partition("-")
            if int(last or first) < int(first):
                raise ValueError(f"the range {part} ends before it begins")
            found.append((int(first), int(last or first)))
        return cls(_merged(sorted(found)))

    def __str__(self) -> str:
        return ",".join(
            f"{first}" if first == last else f"{first}-{last}" for first, last in self.ranges
        )

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __contains__(self, item: int) -> bool:
        at = bisect_right(self.ranges, item, key=lambda one: one[0])
        return at > 0 and item <= self.ranges[at - 1][1]

    def __or__(self, other: "ItemRanges") -> "ItemRanges":
        if not other.ranges or not self.ranges:
            return self if self.ranges else other
        return ItemRanges(_merged(sorted((*self.ranges, *other.ranges))))

    def __and__(self, other: "ItemRanges") -> "ItemRanges":
        found: list[_Range] = []
        mine, theirs = iter(self.ranges), iter(other.ranges)
        one, two = next(mine, None), next(theirs, None)
        while one and two:
            first, last = max(one[0], two[0]), min(one[1], two[1])
            if first <= last:
                found.append((first, last))
            if one[1] < two[1]:
                one = next(mine, None)
            else:
                two = next(theirs, None)
        return ItemRanges(tuple(found))

    def __sub__(self, other: "ItemRanges") -> "ItemRanges":
        if not self.ranges:
            return self
        end = self.ranges[-1][1] + 1
        edges = [(-1, -1), *other.ranges, (end, end)]
        gaps = (
            (before[1] + 1, after[0] - 1)
            for before, after in pairwise(edges)
            if before[1] + 1 < after[0]
        )
        return self & ItemRanges(tuple(gaps))

    def first_items(self, count: int, max_ranges: int) -> "ItemRanges":
        """Return the first items, up to these numbers of items and of ranges."""
        taken: list[_Range] = []
        for first, last in self.ranges[:max_ranges]:
            if count <= 0:
                break
            taken.append((first, min(last, first + count - 1)))
            count -= last - first + 1
        return ItemRanges(tuple(taken))

    def halves(self) -> "tuple[ItemRanges, ItemRanges]":
        """Return the first and the second half; of one item the second is empty."""
        first = self.first_items((len(self) + 1) // 2, len(self.ranges))
        return first, self - first

    def position(self, item: int) -> int:
        """Return how many items of the set are smaller."""
        at = bisect_left(self.ranges, item, key=lambda one: one[1])
        before = sum(last - first + 1 for first, last in self.ranges[:at])
        inside = item - self.ranges[at][0] if at < len(self.ranges) else 0
        return before + max(inside, 0)


NO_ITEMS = ItemRanges()


def _merged(ranges: Iterable[_Range]) -> tuple[_Range, ...]:
    """Return sorted ranges with those that overlap or touch joined."""
    merged: list[_Range] = []
    for first, last in ranges:
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)
