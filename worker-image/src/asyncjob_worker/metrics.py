"""The worker's metrics, all in one table. Names and labels are part of the interface.

Labels are bounded: types are those of the app's own handlers, all else comes from closed lists.
What a part counts or knows anyway is read off it when somebody asks, see `readings`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from asyncjob.lifecycle.move import Move

PREFIX: Final = "asyncjob_worker_"

SECONDS_BUCKETS: Final = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200)

Samples = Mapping[tuple[str, ...], float]
"""Label values → value."""


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
    labels: Sequence[str] = ()

    @property
    def shown_as(self) -> str:
        """The name that a scrape shows."""
        return PREFIX + self.name + ("_total" if self.kind is Kind.COUNTER else "")


CLAIMS: Final = Spec(
    "claims",
    Kind.COUNTER,
    "Claims, by what became of them: won, conflict (another worker has the job), refused (by the "
    "API server's rules).",
    ("outcome",),
)
FINISHED: Final = Spec(
    "jobs_finished",
    Kind.COUNTER,
    "Attempts whose outcome is stored, by job type, the phase that the job went to and the reason.",
    ("type", "phase", "reason"),
)
FENCED: Final = Spec(
    "fenced",
    Kind.COUNTER,
    "Attempts without a stored outcome: the job was no longer ours, or every form of the outcome "
    "was refused.",
    ("type",),
)
HANDLER: Final = Spec(
    "handler_seconds",
    Kind.HISTOGRAM,
    "How long handlers ran, by job type, abandoned ones included once they end.",
    ("type",),
)
RUNNING: Final = Spec("running", Kind.GAUGE, "Jobs held right now.")
SLOTS: Final = Spec("slots", Kind.GAUGE, "Jobs that may run at a time.")
ABANDONED: Final = Spec("abandoned", Kind.GAUGE, "Slots held by handlers that ignore their stop.")
BACKLOG: Final = Spec("backlog", Kind.GAUGE, "Claimable jobs kept in mind.")
RENEWALS: Final = Spec(
    "lease_renewals",
    Kind.COUNTER,
    "Heartbeats, by outcome: stored, failed (no answer or refused; tried again).",
    ("outcome",),
)
STALLS: Final = Spec(
    "event_loop_stalls",
    Kind.COUNTER,
    "Times the event loop stood still for more than a second, by the job type whose handler "
    "blocked it; empty where that cannot be known.",
    ("type",),
)
STALLED: Final = Spec(
    "event_loop_stalled_seconds",
    Kind.COUNTER,
    "Seconds it stood still in all; grows while it does.",
    ("type",),
)
WATCHES: Final = Spec(
    "watch_starts",
    Kind.COUNTER,
    "Watches begun, by what is watched (jobs, queue, workers, cancels). A healthy one lasts about "
    "ten minutes.",
    ("watch",),
)
REQUESTS: Final = Spec(
    "api_requests",
    Kind.COUNTER,
    "Requests to the API server but for watches, by method and code (0: no answer).",
    ("method", "code"),
)

TABLE: Final = (
    CLAIMS,
    FINISHED,
    FENCED,
    HANDLER,
    RUNNING,
    SLOTS,
    ABANDONED,
    BACKLOG,
    RENEWALS,
    STALLS,
    STALLED,
    WATCHES,
    REQUESTS,
)


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._finished = self._counter(FINISHED)
        self._fenced = self._counter(FENCED)
        self._stalls = self._counter(STALLS)
        self._stalled = self._counter(STALLED)
        self._watches = self._counter(WATCHES)
        self._requests = self._counter(REQUESTS)
        self._handler = Histogram(
            PREFIX + HANDLER.name,
            HANDLER.help,
            HANDLER.labels,
            buckets=SECONDS_BUCKETS,
            registry=self.registry,
        )

    def finished(self, type_: str, move: Move) -> None:
        """Count an outcome that is stored."""
        reason = move.reason.value if move.reason else ""
        self._finished.labels(type_, move.target.value, reason).inc()

    def fenced(self, type_: str) -> None:
        """Count an attempt without a stored outcome."""
        self._fenced.labels(type_).inc()

    def handled(self, type_: str, seconds: float) -> None:
        """Note how long a handler ran."""
        self._handler.labels(type_).observe(seconds)

    def stall_begun(self, type_: str) -> None:
        """Count a stall of the event loop."""
        self._stalls.labels(type_).inc()

    def stalled(self, type_: str, seconds: float) -> None:
        """Add to the time that the event loop stood still."""
        self._stalled.labels(type_).inc(seconds)

    def watch_begun(self, watch: str) -> Callable[[], None]:
        """Return what counts the beginnings of a watch."""
        return self._watches.labels(watch).inc

    def request(self, method: str, code: int, _seconds: float) -> None:
        """Count a request; the observer of a session, in any thread."""
        self._requests.labels(method, str(code)).inc()

    def read(self, sources: Mapping[Spec, Callable[[], Samples]]) -> None:
        """Show what the sources say whenever somebody asks."""
        self.registry.register(_Readings(sources))

    def _counter(self, spec: Spec) -> Counter:
        return Counter(PREFIX + spec.name, spec.help, spec.labels, registry=self.registry)


class _Readings(Collector):
    def __init__(self, sources: Mapping[Spec, Callable[[], Samples]]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for spec, source in self._sources.items():
            counts = spec.kind is Kind.COUNTER
            family = CounterMetricFamily if counts else GaugeMetricFamily
            made = family(PREFIX + spec.name, spec.help, labels=spec.labels)
            for labels, value in source().items():
                made.add_metric(labels, value)
            yield made
