"""Metrics of the operator itself, from the SDK's table; those of jobs are in `job_metrics`.

Those of arrays are in `array_metrics`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.metrics import operator
from asyncjob.metrics.prometheus import counter, gauge, histogram
from asyncjob_operator.telemetry.array_metrics import ArrayMetrics
from asyncjob_operator.telemetry.quarantine import ObjectKind

K = TypeVar("K")

RECOVERY_REASONS: Final = (
    Reason.WORKER_GONE,
    Reason.WORKER_CRASHED,
    Reason.LEASE_EXPIRED,
    Reason.CRASH_BUDGET_EXHAUSTED,
    Reason.CANCEL_REQUESTED,
    Reason.DEADLINE_EXCEEDED,
)
"""Reasons of jobs that were taken from a lost worker."""

REPAIR_KINDS: Final = ("added", "changed", "deleted")


class OperatorMetrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.leading = gauge(operator.LEADING, registry)
        self.synced = gauge(operator.SYNCED, registry)
        self.watch_lag = gauge(operator.WATCH_LAG_SECONDS, registry)
        self.watch_events = counter(operator.WATCH_EVENTS, registry)
        self.watch_restarts = counter(operator.WATCH_RESTARTS, registry)
        self.writes = counter(operator.WRITES, registry)
        self.cycles = counter(operator.RECOVERY_CYCLES, registry)
        self.cycle_seconds = histogram(operator.RECOVERY_CYCLE_SECONDS, registry)
        self.scheduler_lag = histogram(operator.SCHEDULER_LAG_SECONDS, registry)
        self.recovery_errors = counter(operator.RECOVERY_ERRORS, registry)
        self.jobs_recovered = counter(operator.RECOVERED, registry)
        self.recovery_seconds = histogram(operator.RECOVERY_SECONDS, registry)
        self.recovery_failed = counter(operator.RECOVERY_FAILED, registry)
        self.objects_quarantined = counter(operator.QUARANTINED, registry)
        self.resync_repairs = counter(operator.RESYNC_REPAIRS, registry)
        self.workers_removed = counter(operator.WORKERS_REMOVED, registry)
        self.cron_runs = counter(operator.CRON_RUNS, registry)
        self.arrays = ArrayMetrics(registry)
        self.jobs_removed = counter(operator.RETENTION_REMOVED, registry)
        self.kubernetes_events = counter(operator.EVENTS_POSTED, registry)
        self.requests = counter(operator.API_REQUESTS, registry)
        self.request_seconds = histogram(operator.API_REQUEST_SECONDS, registry)
        _start_at_zero(self.jobs_recovered, RECOVERY_REASONS)
        _start_at_zero(self.resync_repairs, REPAIR_KINDS)
        _start_at_zero(self.objects_quarantined, ObjectKind)
        self._requeues = gauge(operator.PENDING_REQUEUES, registry)
        self._quarantined_objects = gauge(operator.QUARANTINED_OBJECTS, registry)
        self._known_jobs = gauge(operator.KNOWN_JOBS, registry)
        self._over_limit = gauge(operator.RETENTION_OVER_LIMIT, registry)
        self._namespaces_over_limit = 0

    def observe_request(self, method: str, code: int, seconds: float) -> None:
        """Count a request to the API server; called by the session."""
        self.requests.labels(method, str(code)).inc()
        self.request_seconds.labels(method).observe(seconds)

    def observe_requeue_lag(self, seconds: float) -> None:
        """Record how late the earliest deadline of a job is."""
        self.scheduler_lag.observe(seconds)

    def observe_requeue_cycle(self, seconds: float) -> None:
        """Count a turn of the requeue timer of jobs, which has taken this many seconds."""
        self.cycles.inc()
        self.cycle_seconds.observe(seconds)

    def set_namespaces_over_limit(self, namespaces: int) -> None:
        """Set how many namespaces hold too many finished jobs."""
        self._namespaces_over_limit = namespaces

    def register_sources(
        self,
        leads: Callable[[], bool],
        jobs_by_phase: Callable[[], Mapping[Phase, int]],
        requeues: Callable[[], int],
        quarantined_by_kind: Callable[[], Mapping[str, int]],
    ) -> None:
        """Export what these return at each scrape."""
        self.leading.set_function(leads)
        self._requeues.set_function(requeues)
        self._over_limit.set_function(lambda: self._namespaces_over_limit if leads() else 0)
        for phase in Phase:
            self._known_jobs.labels(phase.value).set_function(
                partial(_count_of, phase, jobs_by_phase)
            )
        for kind in ObjectKind:
            self._quarantined_objects.labels(kind.value).set_function(
                partial(_count_of, kind.value, quarantined_by_kind)
            )


def _start_at_zero(metric: Counter, labels: Iterable[str]) -> None:
    """Export these labels at 0 from the start: Prometheus sees no increase in a first value."""
    for label in labels:
        metric.labels(label)


def _count_of(key: K, counts: Callable[[], Mapping[K, int]]) -> int:
    return counts().get(key, 0)
