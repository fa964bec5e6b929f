"""Metrics of all arrays, exported by the leader only, as those of jobs are.

Gauges are computed when metrics are scraped; items are counted by the write that counts them. The
number of different queues is bounded: users who create arrays choose these texts.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.metrics import CardinalityLimit, arrays
from asyncjob.metrics.prometheus import MetricFamily, counter, metric_family
from asyncjob_operator.telemetry.job_metrics import MAX_QUEUES, Labels

ITEM_OUTCOMES: Final = ("succeeded", "failed")


@dataclass(frozen=True, slots=True)
class ArrayStats:
    """What the gauges say of one array."""

    namespace: str
    queue: str
    phase: ArrayPhase
    open_chunks: int
    items_left: int
    """Items that are not counted yet; 0 once it has ended."""

    idle_seconds: float
    """For how long none of its chunks has run although some might; 0 if one runs or none may."""


class ArrayMetrics:
    """The counter and the gauges of arrays, in the registry of the operator's metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._labels = CardinalityLimit(MAX_QUEUES)
        self._items = counter(arrays.ITEMS, registry)

    def record_counted(self, namespace: str, queue: str, *, succeeded: int, failed: int) -> None:
        """Count items that a write has just counted."""
        labels = self._labels((namespace, queue))
        self._items.labels(*labels, "succeeded").inc(succeeded)
        self._items.labels(*labels, "failed").inc(failed)

    def expose(self, stats: Callable[[], Iterable[ArrayStats] | None]) -> None:
        """Export what `stats` returns at each scrape; None: nothing is known, or others lead."""
        self._registry.register(_ArrayGauges(self, stats))

    def labels_of(self, stats: ArrayStats) -> Labels:
        """Return the labels of an array, whose counters are there from the first scrape on.

        Prometheus sees no increase in a first value.
        """
        labels = self._labels((stats.namespace, stats.queue))
        for outcome in ITEM_OUTCOMES:
            self._items.labels(*labels, outcome)
        return labels


class _ArrayGauges(Collector):
    def __init__(
        self, metrics: ArrayMetrics, stats: Callable[[], Iterable[ArrayStats] | None]
    ) -> None:
        self._metrics = metrics
        self._stats = stats

    def collect(self) -> Iterator[MetricFamily]:
        found = self._stats()
        if found is None:
            return
        phases: dict[Labels, float] = {}
        left: dict[Labels, float] = {}
        opened: dict[Labels, float] = {}
        idle: dict[Labels, float] = {}
        for one in found:
            labels = self._metrics.labels_of(one)
            if labels not in left:
                phases |= {(*labels, phase.value): 0.0 for phase in ArrayPhase}
            phases[*labels, one.phase.value] += 1
            left[labels] = left.get(labels, 0.0) + one.items_left
            opened[labels] = opened.get(labels, 0.0) + one.open_chunks
            idle[labels] = max(idle.get(labels, 0.0), one.idle_seconds)
        yield metric_family(arrays.ARRAYS, phases)
        yield metric_family(arrays.ITEMS_LEFT, left)
        yield metric_family(arrays.OPEN_CHUNKS, opened)
        yield metric_family(arrays.IDLE_SECONDS, idle)
