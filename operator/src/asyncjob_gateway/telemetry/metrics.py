"""The gateway's metrics, built from the SDK's table.

Labels are bounded: routes are patterns, methods and outcomes closed lists; never a caller or a job.
"""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from asyncjob.instruments import Family, Samples, counter, family, gauge, histogram
from asyncjob.metrics import Spec, gateway

Reading = Callable[[], Samples]
"""Gives label values → value, whenever somebody asks."""


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.in_flight = gauge(gateway.IN_FLIGHT, registry)
        self.streams = gauge(gateway.STREAMS, registry)
        self._requests = counter(gateway.REQUESTS, registry)
        self._seconds = histogram(gateway.REQUEST_SECONDS, registry)
        self._resyncs = counter(gateway.RESYNCS, registry)
        self._submissions = counter(gateway.SUBMISSIONS, registry)
        self._watches = counter(gateway.WATCHES, registry)
        self._api_requests = counter(gateway.API_REQUESTS, registry)
        self._api_seconds = histogram(gateway.API_REQUEST_SECONDS, registry)

    def answered(self, method: str, route: str, code: int, seconds: float | None) -> None:
        """Count a request; `seconds` is None for a stream."""
        self._requests.labels(method, route, str(code)).inc()
        if seconds is not None:
            self._seconds.labels(method, route).observe(seconds)

    def submitted(self, outcome: str) -> None:
        """Count a submission."""
        self._submissions.labels(outcome).inc()

    def resync(self) -> None:
        """Count a follower that has to list anew."""
        self._resyncs.inc()

    def watch_begun(self, watch: str) -> Callable[[], None]:
        """Return what counts the beginnings of a watch."""
        return self._watches.labels(watch).inc

    def api_request(self, method: str, code: int, seconds: float) -> None:
        """Count a request to the API server; the observer of a session."""
        self._api_requests.labels(method, str(code)).inc()
        self._api_seconds.labels(method).observe(seconds)

    def read(self, sources: Mapping[Spec, Reading]) -> None:
        """Show what the sources say whenever somebody asks."""
        self.registry.register(_Readings(sources))


class _Readings(Collector):
    def __init__(self, sources: Mapping[Spec, Reading]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Family]:
        for spec, source in self._sources.items():
            yield family(spec, source())
