"""Keeps labels that users fill from making series without end.

The first distinct values are shown as they are, all further ones as `other`.
"""

from collections.abc import Callable
from typing import Final

OTHER: Final = "other"

Labels = tuple[str, ...]


class Bound:
    """Lets the first `limit` distinct label sets through; `rest` says what others are shown as."""

    def __init__(
        self, limit: int, rest: Callable[[Labels], Labels] = lambda labels: (OTHER,) * len(labels)
    ) -> None:
        self._limit = limit
        self._rest = rest
        self._known: dict[Labels, Labels] = {}

    def __call__(self, labels: Labels) -> Labels:
        """Return the labels to show."""
        known = self._known.get(labels)
        if known is not None:
            return known
        if len(self._known) < self._limit:
            self._known[labels] = labels
            return labels
        return self._rest(labels)
