"""Keeps labels that users fill from making series without end.

The first distinct values are shown as they are, all further ones as `other`.
"""

from collections.abc import Callable
from typing import Final

OTHER_LABEL: Final = "other"

LabelValues = tuple[str, ...]


class CardinalityLimit:
    """Lets the first `limit` distinct label sets through.

    `overflow` says what others are shown as.
    """

    def __init__(
        self,
        limit: int,
        overflow: Callable[[LabelValues], LabelValues] = lambda labels: (
            (OTHER_LABEL,) * len(labels)
        ),
    ) -> None:
        self._limit = limit
        self._overflow = overflow
        self._known: dict[LabelValues, LabelValues] = {}

    def __call__(self, labels: LabelValues) -> LabelValues:
        """Return the labels to show."""
        known = self._known.get(labels)
        if known is not None:
            return known
        if len(self._known) < self._limit:
            self._known[labels] = labels
            return labels
        return self._overflow(labels)
