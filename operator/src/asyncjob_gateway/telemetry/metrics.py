"""The gateway's metrics, all in one table. Names and labels are part of the interface.

Labels are bounded: routes are those of the program, never paths as they were asked for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

PREFIX: Final = "asyncjob_gateway_"

SECONDS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Kind(Enum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Spec:
    """One metric; `name` without the prefix and without a counter's `_total`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def shown_as(self) -> str:
        """The name that a scrape shows."""
        return PREFIX + self.name + ("_total" if self.kind is Kind.COUNTER else "")


REQUESTS: Final = Spec(
    "requests", Kind.COUNTER, "Requests answered.", ("method", "route", "status")
)
SECONDS: Final = Spec(
    "request_seconds",
    Kind.HISTOGRAM,
    "Time from a request's headers to the end of its answer; streams of events are not counted.",
    ("method", "route"),
)
IN_FLIGHT: Final = Spec("in_flight", Kind.GAUGE, "Requests being answered, streams included.")
STREAMS: Final = Spec("streams", Kind.GAUGE, "Streams of events that are open.")
RESYNCS: Final = Spec(
    "stream_resyncs",
    Kind.COUNTER,
    "Times that a follower was told to list anew: it was too slow, or away for too long.",
)
SUBMITTED: Final = Spec(
    "submissions",
    Kind.COUNTER,
    "Jobs submitted, by outcome (created, repeated, refused).",
    ("outcome",),
)
JOBS_KEPT: Final = Spec("cache_jobs", Kind.GAUGE, "Jobs in the cache.", ("namespace",))
SYNCED: Final = Spec("cache_synced", Kind.GAUGE, "1 once all has been listed.", ("namespace",))
WATCHES: Final = Spec(
    "watch_starts",
    Kind.COUNTER,
    "Watches begun, by what is watched (jobs, queues, workers). A healthy one lasts about ten "
    "minutes.",
    ("watch",),
)
API_REQUESTS: Final = Spec(
    "api_requests",
    Kind.COUNTER,
    "Requests to the API server but for watches, by method and code (0: no answer).",
    ("method", "code"),
)

TABLE: Final = (
    *(REQUESTS, SECONDS, IN_FLIGHT, STREAMS, RESYNCS, SUBMITTED),
    *(JOBS_KEPT, SYNCED, WATCHES, API_REQUESTS),
)

Readings = Callable[[], Iterator[tuple[Spec, tuple[str, ...], float]]]
"""Gives metric, label values and value, whenever somebody asks."""


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = self._counter(REQUESTS)
        self._watches = self._counter(WATCHES)
        self._api_requests = self._counter(API_REQUESTS)
        self._submitted = self._counter(SUBMITTED)
        self._resyncs = self._counter(RESYNCS)
        self.in_flight = self._gauge(IN_FLIGHT)
        self.streams = self._gauge(STREAMS)
        self._seconds = Histogram(
            PREFIX + SECONDS.name,
            SECONDS.help,
            SECONDS.labels,
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count a request; `seconds` is None for a stream."""
        self._requests.labels(method, route, str(status)).inc()
        if seconds is not None:
            self._seconds.labels(method, route).observe(seconds)

    def submitted(self, outcome: str) -> None:
        """Count a submission."""
        self._submitted.labels(outcome).inc()

    def resync(self) -> None:
        """Count a follower that has to list anew."""
        self._resyncs.inc()

    def watch_begun(self, watch: str) -> Callable[[], None]:
        """Return what counts the beginnings of a watch."""
        return self._watches.labels(watch).inc

    def api_request(self, method: str, code: int, _seconds: float) -> None:
        """Count a request to the API server; the observer of a session."""
        self._api_requests.labels(method, str(code)).inc()

    def read(self, readings: Readings) -> None:
        """Show what the readings say whenever somebody asks."""
        self.registry.register(_Collector(readings))

    def _counter(self, spec: Spec) -> Counter:
        return Counter(PREFIX + spec.name, spec.help, spec.labels, registry=self.registry)

    def _gauge(self, spec: Spec) -> Gauge:
        return Gauge(PREFIX + spec.name, spec.help, spec.labels, registry=self.registry)


class _Collector(Collector):
    def __init__(self, readings: Readings) -> None:
        self._readings = readings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[Spec, GaugeMetricFamily] = {}
        for spec, labels, value in self._readings():
            family = families.setdefault(
                spec, GaugeMetricFamily(PREFIX + spec.name, spec.help, labels=spec.labels)
            )
            family.add_metric(labels, value)
        yield from families.values()
