"""The gateway's metrics, built from the SDK's table.

Labels are bounded: routes are patterns, methods and outcomes closed lists; never a caller or a job.
"""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from asyncjob.instruments import MetricFamily, Samples, counter, gauge, histogram, metric_family
from asyncjob.metrics import MetricSpec, gateway

MetricSource = Callable[[], Samples]
"""Gives label values → value, whenever somebody asks."""


class GatewayMetrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.in_flight = gauge(gateway.IN_FLIGHT, registry)
        self.streams = gauge(gateway.STREAMS, registry)
        self._requests = counter(gateway.REQUESTS, registry)
        self._seconds = histogram(gateway.REQUEST_SECONDS, registry)
        self._resyncs = counter(gateway.STREAM_RESYNCS, registry)
        self._submissions = counter(gateway.SUBMISSIONS, registry)
        self._watches = counter(gateway.WATCH_STARTS, registry)
        self._api_requests = counter(gateway.API_REQUESTS, registry)
        self._api_seconds = histogram(gateway.API_REQUEST_SECONDS, registry)

    def count_request(self, method: str, route: str, code: int, seconds: float | None) -> None:
        """Count a request; `seconds` is None for a stream."""
        self._requests.labels(method, route, str(code)).inc()
        if seconds is not None:
            self._seconds.labels(method, route).observe(seconds)

    def count_submission(self, outcome: str) -> None:
        """Count a submission."""
        self._submissions.labels(outcome).inc()

    def count_resync(self) -> None:
        """Count a follower that has to list anew."""
        self._resyncs.inc()

    def watch_counter(self, watch: str) -> Callable[[], None]:
        """Return what counts the beginnings of a watch."""
        return self._watches.labels(watch).inc

    def observe_api_request(self, method: str, code: int, seconds: float) -> None:
        """Count a request to the API server; the observer of a session."""
        self._api_requests.labels(method, str(code)).inc()
        self._api_seconds.labels(method).observe(seconds)

    def register_sources(self, sources: Mapping[MetricSpec, MetricSource]) -> None:
        """Show what the sources say whenever somebody asks."""
        self.registry.register(_SourceCollector(sources))


class _SourceCollector(Collector):
    def __init__(self, sources: Mapping[MetricSpec, MetricSource]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[MetricFamily]:
        for spec, source in self._sources.items():
            yield metric_family(spec, source())
