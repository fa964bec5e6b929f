"""The operator's metrics, all in one table. Names and labels are part of the interface."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from asyncjob.lifecycle.phases import Phase

PREFIX = "asyncjob_operator"

Counts = Mapping[tuple[str, str, Phase], int]


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        name = f"{PREFIX}_{{}}".format
        self.leading = Gauge(name("leading"), "1 while this replica may act.", registry=registry)
        self.synced = Gauge(name("synced"), "1 once all jobs have been listed.", registry=registry)
        self.events = Counter(
            name("watch_events"), "Watch events about jobs taken in.", registry=registry
        )
        self.watch_restarts = Counter(
            name("watch_restarts"), "Times the watching part was started anew.", registry=registry
        )
        self.writes = Counter(
            name("writes"),
            "Decisions carried to the API server, by policy and outcome "
            "(done, conflict, gone, refused, error, disproved).",
            ["policy", "outcome"],
            registry=registry,
        )
        self.cycles = Counter(
            name("recovery_cycles"), "Turns of the loop that judges leases.", registry=registry
        )
        self.cycle_seconds = Histogram(
            name("recovery_duration_seconds"),
            "Duration of such a turn.",
            buckets=(0.0001, 0.001, 0.01, 0.1, 1, 10),
            registry=registry,
        )
        self.recovery_errors = Counter(
            name("recovery_errors"), "Turns of the loop that failed.", registry=registry
        )
        self.recovered = Counter(
            name("recovery_recovered"),
            "Jobs taken from dead workers, by reason.",
            ["reason"],
            registry=registry,
        )
        self.recovery_failed = Counter(
            name("recovery_failed"),
            "Attempts to take a job from a dead worker that failed; each is tried again.",
            registry=registry,
        )
        self.repairs = Counter(
            name("resync_repairs"),
            "Jobs whose change the watch had missed, by kind (added, changed, deleted).",
            ["kind"],
            registry=registry,
        )
        self.workers_removed = Counter(
            name("workers_removed"), "Leases of silent workers removed.", registry=registry
        )
        self.cron_runs = Counter(
            name("cron_runs"),
            "Jobs of schedules created, by what asked for them (schedule, trigger, backfill).",
            ["kind"],
            registry=registry,
        )
        self.removed = Counter(
            name("retention_removed"), "Finished jobs removed.", registry=registry
        )
        self.over_limit = Gauge(
            name("retention_over_limit"),
            "Namespaces that hold more finished jobs than their limit.",
            registry=registry,
        )
        self.notices = Counter(
            name("events_posted"),
            "Kubernetes Events, by outcome (posted, dropped, error).",
            ["outcome"],
            registry=registry,
        )
        self.requests = Counter(
            name("api_requests"),
            "Requests to the API server, by method and code (0: no answer).",
            ["method", "code"],
            registry=registry,
        )

    def request(self, method: str, code: int, _seconds: float) -> None:
        """Count a request; the observer of a session."""
        self.requests.labels(method, str(code)).inc()

    def watch_store(self, counts: Callable[[], Counts], agenda: Callable[[], int]) -> None:
        """Show jobs by phase and the size of the agenda, counted when scraped."""
        self.registry.register(_StoreCollector(counts, agenda))


class _StoreCollector(Collector):
    def __init__(self, counts: Callable[[], Counts], agenda: Callable[[], int]) -> None:
        self._counts = counts
        self._agenda = agenda

    def collect(self) -> Iterator[GaugeMetricFamily]:
        jobs = GaugeMetricFamily(
            "asyncjob_jobs", "Jobs there are.", labels=["namespace", "queue", "phase"]
        )
        for (namespace, queue, phase), count in self._counts().items():
            jobs.add_metric([namespace, queue, phase.value], count)
        yield jobs
        yield GaugeMetricFamily(
            f"{PREFIX}_agenda", "Jobs to look at when their time has come.", value=self._agenda()
        )
