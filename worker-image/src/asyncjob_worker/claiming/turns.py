"""Waiting names that take turns: each array has one turn after another, however many chunks it has.

Places are kept apart from names. A chunk that comes to the end of the queue takes the last place,
and the first place goes to the array whose turn it is; so arrays take turns among themselves, and
jobs that are no chunks wait neither longer nor shorter by that.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

SortKey = TypeVar("SortKey", int, float)


class TurnQueue(Generic[SortKey]):
    """Names and their places, in ascending order. All names of no array are in order of arrival."""

    # Deques instead of dicts: finding a dict's first key passes over all keys deleted before it.
    __slots__ = ("_names", "_places", "_turns")

    def __init__(self) -> None:
        self._places: deque[SortKey] = deque()
        self._names: dict[str, deque[str]] = {}
        self._turns: deque[str] = deque()

    def __len__(self) -> int:
        return len(self._places)

    @property
    def first(self) -> SortKey:
        """Return the first place. Raises IndexError if there is none."""
        return self._places[0]

    @property
    def second(self) -> SortKey | None:
        """Return the second place; None if there is none."""
        return self._places[1] if len(self._places) > 1 else None

    @property
    def first_name(self) -> str:
        """Return the name that gets the first place. Raises IndexError if there is none."""
        return self._names[self._turns[0]][0]

    def append(self, place: SortKey, name: str, array: str) -> None:
        """Add a name of an array; empty: of none. An array that comes back has the last turn."""
        self._places.append(place)
        if array not in self._names:
            self._names[array] = deque()
            self._turns.append(array)
        self._names[array].append(name)

    def popleft(self) -> str:
        """Remove the first place, and return the name that gets it. Raises IndexError if empty."""
        return self._pop()[1]

    def pop_last(self, limit: SortKey, key: Callable[[SortKey], SortKey]) -> str | None:
        """Remove the last place whose key is at most `limit`, and return the name that gets it.

        Keys ascend as places do. None if that is the first place, or there is none. Names of no
        array stand in their places; among arrays it is the name that would be the last of all.
        """
        ready = bisect_right(self._places, limit, key=key)
        if ready <= 1:
            return None
        del self._places[ready - 1]
        # Of those with as many names left, the one whose turn is last.
        array = max(reversed(self._turns), key=lambda one: len(self._names[one]))
        names = self._names[array]
        last = -1 if len(self._turns) > 1 else ready - 1
        name = names[last]
        del names[last]
        if not names:
            del self._names[array]
            self._turns.remove(array)
        return name

    def compact(self, is_wanted: Callable[[str], bool]) -> None:
        """Remove the names that are not wanted, and all but the first occurrence of each."""
        seen: set[str] = set()
        for place, name, array in [self._pop() for _ in range(len(self))]:
            if name not in seen and is_wanted(name):
                seen.add(name)
                self.append(place, name, array)

    def _pop(self) -> tuple[SortKey, str, str]:
        place = self._places.popleft()
        array = self._turns.popleft()
        names = self._names[array]
        name = names.popleft()
        if names:
            self._turns.append(array)
        else:
            del self._names[array]
        return place, name, array
