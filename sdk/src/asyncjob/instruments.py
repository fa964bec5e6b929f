"""Turns entries of the metrics' table into what the Prometheus client exports.

Only for parts that depend on `prometheus-client`; the SDK itself does not.
"""

from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from asyncjob.metrics import Kind, Spec

# They would be a second series for each counter, which is in no table and no query.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library is typed but for this

Samples = Mapping[tuple[str, ...], float]
"""Label values → value."""

Family = CounterMetricFamily | GaugeMetricFamily


def counter(spec: Spec, registry: CollectorRegistry) -> Counter:
    """Return a counter."""
    return Counter(spec.name, spec.help, spec.labels, registry=registry)


def gauge(spec: Spec, registry: CollectorRegistry) -> Gauge:
    """Return a gauge."""
    return Gauge(spec.name, spec.help, spec.labels, registry=registry)


def histogram(spec: Spec, registry: CollectorRegistry) -> Histogram:
    """Return a histogram."""
    return Histogram(spec.name, spec.help, spec.labels, buckets=spec.buckets, registry=registry)


def family(spec: Spec, samples: Samples) -> Family:
    """Return a counter's or a gauge's values as they are now, for a collector."""
    kind = CounterMetricFamily if spec.kind is Kind.COUNTER else GaugeMetricFamily
    made = kind(spec.name, spec.help, labels=spec.labels)
    for labels, value in samples.items():
        made.add_metric(labels, value)
    return made
