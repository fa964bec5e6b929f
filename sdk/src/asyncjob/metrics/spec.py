"""The shape of one metric. Knows no library that exports metrics: the table is data."""

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

    @property
    def series_names(self) -> frozenset[str]:
        """The names that queries may use."""
        if self.kind is MetricType.HISTOGRAM:
            return frozenset(f"{self.name}_{end}" for end in ("bucket", "sum", "count"))
        return frozenset({self.exposed_name})
