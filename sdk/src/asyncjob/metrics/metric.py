"""The definition of one metric, and the limit on the series that its labels may create.

It knows no library that exports metrics: the table is data. Labels that users fill are limited: the
first distinct values are exported as they are, all further ones as `other`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MetricType(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Component(StrEnum):
    """Who exports a metric. Of several operators only the one that leads counts jobs."""

    LEADER = "operator (leader)"
    OPERATOR = "operator"
    WORKER = "worker"
    GATEWAY = "gateway"


SHORT_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60)
"""Buckets in seconds for what machines wait for."""

LONG_BUCKETS: Final = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 86400)
"""Buckets in seconds for what jobs take."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric; `name` without a counter's `_total`, `unit` of its values, `buckets` in it."""

    name: str
    kind: MetricType
    part: Component
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def exposed_name(self) -> str:
        """The name that a scrape shows."""
        return self.name + ("_total" if self.kind is MetricType.COUNTER else "")


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
