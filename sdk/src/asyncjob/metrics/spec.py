"""The shape of one metric. Knows no library that exports metrics: the table is data."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Part(StrEnum):
    """Who exports a metric. Of several operators only the one that leads counts jobs."""

    LEADER = "operator (leader)"
    OPERATOR = "operator"
    WORKER = "worker"
    GATEWAY = "gateway"


SHORT: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60)
"""Buckets in seconds for what machines wait for."""

LONG: Final = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 86400)
"""Buckets in seconds for what jobs take."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric; `name` without a counter's `_total`, `unit` of its values, `buckets` in it."""

    name: str
    kind: Kind
    part: Part
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def shown_as(self) -> str:
        """The name that a scrape shows."""
        return self.name + ("_total" if self.kind is Kind.COUNTER else "")

    @property
    def series(self) -> frozenset[str]:
        """The names that queries may use."""
        if self.kind is Kind.HISTOGRAM:
            return frozenset(f"{self.name}_{end}" for end in ("bucket", "sum", "count"))
        return frozenset({self.shown_as})
