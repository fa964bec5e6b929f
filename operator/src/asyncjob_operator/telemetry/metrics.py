"""The operator's metrics of itself, from the SDK's table; those of jobs are in `job_metrics`."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter

from asyncjob.instruments import counter, gauge, histogram
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.metrics import operator
from asyncjob_operator.telemetry.containment import Kind

K = TypeVar("K")

RECOVERY_REASONS: Final = (
    Reason.WORKER_GONE,
    Reason.WORKER_CRASHED,
    Reason.LEASE_EXPIRED,
    Reason.CRASH_BUDGET_EXHAUSTED,
    Reason.CANCEL_REQUESTED,
)
"""Why a job is in its phase that was taken from a dead worker."""

REPAIR_KINDS: Final = ("added", "changed", "deleted")


class Metrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.leading = gauge(operator.LEADING, registry)
        self.synced = gauge(operator.SYNCED, registry)
        self.watch_lag = gauge(operator.WATCH_LAG, registry)
        self.events = counter(operator.EVENTS, registry)
        self.watch_restarts = counter(operator.WATCH_RESTARTS, registry)
        self.writes = counter(operator.WRITES, registry)
        self.cycles = counter(operator.CYCLES, registry)
        self.cycle_seconds = histogram(operator.CYCLE_SECONDS, registry)
        self.scheduler_lag = histogram(operator.SCHEDULER_LAG, registry)
        self.recovery_errors = counter(operator.RECOVERY_ERRORS, registry)
        self.recovered = counter(operator.RECOVERED, registry)
        self.recovery_seconds = histogram(operator.RECOVERY_SECONDS, registry)
        self.recovery_failed = counter(operator.RECOVERY_FAILED, registry)
        self.set_aside = counter(operator.SET_ASIDE, registry)
        self.repairs = counter(operator.REPAIRS, registry)
        self.workers_removed = counter(operator.WORKERS_REMOVED, registry)
        self.cron_runs = counter(operator.CRON_RUNS, registry)
        self.removed = counter(operator.REMOVED, registry)
        self.notices = counter(operator.NOTICES, registry)
        self.requests = counter(operator.REQUESTS, registry)
        self.request_seconds = histogram(operator.REQUEST_SECONDS, registry)
        _begin_at_zero(self.recovered, RECOVERY_REASONS)
        _begin_at_zero(self.repairs, REPAIR_KINDS)
        _begin_at_zero(self.set_aside, Kind)
        self._agenda = gauge(operator.AGENDA, registry)
        self._aside = gauge(operator.ASIDE, registry)
        self._known = gauge(operator.KNOWN, registry)
        self._over_limit = gauge(operator.OVER_LIMIT, registry)
        self._crowded = 0

    def request(self, method: str, code: int, seconds: float) -> None:
        """Count a request; the observer of a session."""
        self.requests.labels(method, str(code)).inc()
        self.request_seconds.labels(method).observe(seconds)

    def crowded(self, namespaces: int) -> None:
        """Take how many namespaces hold too many finished jobs."""
        self._crowded = namespaces

    def read(
        self,
        leads: Callable[[], bool],
        known: Callable[[], Mapping[Phase, int]],
        agenda: Callable[[], int],
        aside: Callable[[], Mapping[str, int]],
    ) -> None:
        """Show what these say whenever somebody asks."""
        self.leading.set_function(leads)
        self._agenda.set_function(agenda)
        self._over_limit.set_function(lambda: self._crowded if leads() else 0)
        for phase in Phase:
            self._known.labels(phase.value).set_function(partial(_count_of, phase, known))
        for kind in Kind:
            self._aside.labels(kind.value).set_function(partial(_count_of, kind.value, aside))


def _begin_at_zero(metric: Counter, labels: Iterable[str]) -> None:
    """Show these at 0 from the start: what begins at 50 has never grown, as Prometheus sees it."""
    for label in labels:
        metric.labels(label)


def _count_of(key: K, counts: Callable[[], Mapping[K, int]]) -> int:
    return counts().get(key, 0)
