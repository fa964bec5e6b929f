"""Turns entries of the metrics table into the instruments of the Prometheus client library.

Only for components that ask for the extra `metrics`; the SDK itself does not.
"""

from collections.abc import Callable, Iterator, Mapping

from asyncjob.extras import needs
from asyncjob.metrics import MetricSpec, MetricType

with needs("metrics"):
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        disable_created_metrics,
    )
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

# They would be a second series for each counter, which is in no table and no query.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library is typed but for this

Samples = Mapping[tuple[str, ...], float]
"""Label values → value."""

MetricSource = Callable[[], Samples]
"""Returns the samples of one metric at the time of a scrape."""

MetricFamily = CounterMetricFamily | GaugeMetricFamily


def counter(metric: MetricSpec, registry: CollectorRegistry) -> Counter:
    """Return a counter."""
    return Counter(metric.name, metric.help, metric.labels, registry=registry)


def gauge(metric: MetricSpec, registry: CollectorRegistry) -> Gauge:
    """Return a gauge."""
    return Gauge(metric.name, metric.help, metric.labels, registry=registry)


def histogram(metric: MetricSpec, registry: CollectorRegistry) -> Histogram:
    """Return a histogram."""
    return Histogram(
        metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry
    )


def metric_family(metric: MetricSpec, samples: Samples) -> MetricFamily:
    """Return a counter's or a gauge's values as they are now, for a collector."""
    kind = CounterMetricFamily if metric.kind is MetricType.COUNTER else GaugeMetricFamily
    made = kind(metric.name, metric.help, labels=metric.labels)
    for labels, value in samples.items():
        made.add_metric(labels, value)
    return made


class SourceCollector(Collector):
    """Shows metrics whose samples are read from their sources at each scrape."""

    def __init__(self, sources: Mapping[MetricSpec, MetricSource]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[MetricFamily]:
        """Return all of them as they are now."""
        for spec, source in self._sources.items():
            yield metric_family(spec, source())
