"""The worker's metrics, built from the SDK's table.

Labels are bounded: the job types are the first ones of the app's own handlers, all other labels
have a fixed set of values. What a component counts anyway is read from it when metrics are
collected, see `metric_sources`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector

from asyncjob.kube.informer import OpenedWatchCounter, WatchObserver
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.metrics import CardinalityLimit, MetricSpec, worker
from asyncjob.metrics.prometheus import MetricSource, SourceCollector, counter, histogram

MAX_TYPES: Final = 100
"""Job types beyond this number are shown as `other`."""


class JobWatchObserver(OpenedWatchCounter):
    """Counts what the watches of queued jobs tell, in `events`."""

    events = 0

    def job_event(self) -> None:
        """Count an event of a job."""
        self.events += 1


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._type_label = CardinalityLimit(MAX_TYPES)
        self._finished = counter(worker.FINISHED, registry)
        self._fenced = counter(worker.FENCED, registry)
        self._stalls = counter(worker.EVENT_LOOP_STALLS, registry)
        self._stalled = counter(worker.EVENT_LOOP_STALLED_SECONDS, registry)
        self._watches = counter(worker.WATCH_STARTS, registry)
        self._requests = counter(worker.API_REQUESTS, registry)
        self._request_seconds = histogram(worker.API_REQUEST_SECONDS, registry)
        self._handler = histogram(worker.HANDLER_SECONDS, registry)
        self._step = histogram(worker.STEP_SECONDS, registry)

    def expect(self, types: Iterable[str]) -> None:
        """Register the job types, and show at 0 the counters whose growth alerts look for."""
        for type_ in types:
            self._fenced.labels(*self._type_label((type_,)))

    def finished(self, type_: str, outcome: PhaseChange) -> None:
        """Count a stored outcome."""
        reason = outcome.reason.value if outcome.reason else ""
        self._finished.labels(*self._type_label((type_,)), outcome.target.value, reason).inc()

    def fenced(self, type_: str) -> None:
        """Count an attempt without a stored outcome."""
        self._fenced.labels(*self._type_label((type_,))).inc()

    def handler_ended(self, type_: str, seconds: float) -> None:
        """Record how long a handler ran."""
        self._handler.labels(*self._type_label((type_,))).observe(seconds)

    def step_stored(self, type_: str, seconds: float) -> None:
        """Record how long a step took until its result was stored."""
        self._step.labels(*self._type_label((type_,))).observe(seconds)

    def stall_begun(self, type_: str) -> None:
        """Count a stall of the event loop."""
        self._stalls.labels(*self._type_label((type_,))).inc()

    def stalled(self, type_: str, seconds: float) -> None:
        """Add to the time during which the event loop was blocked."""
        self._stalled.labels(*self._type_label((type_,))).inc(seconds)

    def watch_observer(self, watch: str) -> WatchObserver:
        """Return what counts each time that this watch is opened."""
        return OpenedWatchCounter(self._watches.labels(watch).inc)

    def job_watch_observer(self) -> JobWatchObserver:
        """Return what counts the watches of queued jobs, and what they tell."""
        return JobWatchObserver(self._watches.labels("jobs").inc)

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request to the API server; called by a session, in any thread."""
        self._requests.labels(method, str(code)).inc()
        self._request_seconds.labels(method).observe(seconds)

    def add_sources(self, sources: Mapping[MetricSpec, MetricSource]) -> None:
        """Show metrics whose samples are read from the sources at each scrape."""
        self.registry.register(SourceCollector(sources))
