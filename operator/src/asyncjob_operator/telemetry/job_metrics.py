"""Metrics of all jobs, exported by the leader only: a standby would count them twice.

Gauges are computed when metrics are scraped. Counters count the changes seen while leading; what is
only found in a list happened unseen, and is not counted. The number of different namespaces,
queues, types and reasons is bounded: users who create jobs choose these texts, and must not be able
to fill Prometheus with series.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.registry import Collector

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase, Reason
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.metrics import OTHER_LABEL, CardinalityLimit, jobs
from asyncjob.metrics.prometheus import MetricFamily, Samples, counter, histogram, metric_family
from asyncjob_operator.core.retention import FinishedJob
from asyncjob_operator.core.snapshot import Observation

MAX_QUEUES: Final = 200
"""Pairs of namespace and queue; of further ones both are shown as `other`."""

MAX_TYPES: Final = 100
MAX_QUEUE_TYPES: Final = 1000
"""Pairs of queue and type, also per reason; of further ones the type is shown as `other`."""

_REASONS: Final = frozenset(reason.value for reason in Reason)
_WAIT_KINDS: Final = frozenset(kind.value for kind in WaitKind)
Labels = tuple[str, ...]
NamespacedName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class JobStats:
    """Statistics of all jobs and queues."""

    counts: Mapping[tuple[str, str, Phase], int] = field(default_factory=dict)
    """Number of jobs by namespace, queue and phase."""

    oldest_waits: Mapping[NamespacedName, float] = field(default_factory=dict)
    """For how many seconds the oldest queued job of each queue has waited."""

    capacities: Mapping[NamespacedName, tuple[int, int]] | None = None
    """Workers and slots of each queue that has any; None if they are not known."""

    finished_limit: int | None = None
    """Finished jobs that a namespace may hold; None without retention."""

    parked: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """Number of parked jobs by namespace, queue and kind of wait."""

    oldest_parks: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """For how many seconds the oldest of them has been parked."""


class JobLabels:
    """Bounds the label values of all job metrics of one operator process."""

    def __init__(self) -> None:
        self.of_queue = CardinalityLimit(MAX_QUEUES)
        self._type_bound = CardinalityLimit(MAX_TYPES)
        self._queue_type_bound = CardinalityLimit(MAX_QUEUE_TYPES, _without_type)
        self._reason_bound = CardinalityLimit(MAX_QUEUE_TYPES, _without_type)

    def of_type(self, namespace: str, queue: str, type_: str) -> Labels:
        """Return namespace, queue and type."""
        return self._queue_type_bound(
            self.of_queue((namespace, queue)) + self._type_bound((type_,))
        )

    def of_reason(self, namespace: str, queue: str, type_: str, reason: str) -> Labels:
        """Return namespace, queue, type and reason."""
        known = reason if reason in _REASONS else OTHER_LABEL
        return self._reason_bound((*self.of_type(namespace, queue, type_), known))


def _without_type(labels: Labels) -> Labels:
    return (*labels[:2], OTHER_LABEL, *labels[3:])


class JobMetrics:
    """Counters, histograms and gauges of jobs, in the registry of the operator's metrics."""

    def __init__(
        self, registry: CollectorRegistry, leads: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._leads = leads
        self._clock = clock
        self._labels = JobLabels()
        self._submitted = counter(jobs.SUBMITTED, registry)
        self._claimed = counter(jobs.CLAIMED, registry)
        self._retried = counter(jobs.RETRIED, registry)
        self._succeeded = counter(jobs.SUCCEEDED, registry)
        self._redriven = counter(jobs.REDRIVEN, registry)
        self._dead_lettered = counter(jobs.DEAD_LETTERED, registry)
        self._cancelled = counter(jobs.CANCELLED, registry)
        self._queue_wait = histogram(jobs.QUEUE_SECONDS, registry)
        self._end_to_end = histogram(jobs.END_TO_END_SECONDS, registry)

    def expose(self, stats: Callable[[], JobStats | None]) -> None:
        """Export what `stats` returns at each scrape; None: nothing is known yet."""
        self._registry.register(_Gauges(stats, self._leads, self._labels))

    def record_change(
        self, before: JobView | FinishedJob | None, job: JobView, observation: Observation | None
    ) -> None:
        """Count what has just changed of a job.

        `before` and `observation` are the job and its observation before the change.
        """
        if before is not None and before.phase is job.phase and before.attempt == job.attempt:
            return
        if not self._leads():
            return
        if before is None:
            self._count(self._submitted, job)
        begun = job.attempt - (before.attempt if before else 0)
        if begun > 0:
            self._count(self._claimed, job, begun)
        if before is None or before.phase is not job.phase:
            self._count_transition(before.phase if before else None, job)
            self._observe_durations(job, observation)

    def _count_transition(self, before: Phase | None, job: JobView) -> None:
        match job.phase:
            case Phase.RETRYING:
                self._count(self._retried, job)
            case Phase.SUCCEEDED:
                self._count(self._succeeded, job)
            case Phase.DEAD_LETTER:
                self._dead_lettered.labels(*self._reason_labels(job)).inc()
            case Phase.CANCELLED:
                self._cancelled.labels(*self._reason_labels(job)).inc()
            case _:
                pass
        if before is Phase.DEAD_LETTER and job.phase not in FINISHED_PHASES:
            self._count(self._redriven, job)

    def _observe_durations(self, job: JobView, observation: Observation | None) -> None:
        if observation is None:
            return
        queue = self._labels.of_queue((job.namespace, job.queue))
        if (
            job.phase is Phase.RUNNING
            and observation.phase_entry[0] is Phase.QUEUED
            and observation.seen_from_start
        ):
            self._queue_wait.labels(*queue).observe(self._clock() - observation.entered_at)
        elif job.finished and observation.created_at is not None:
            self._end_to_end.labels(*queue).observe(self._clock() - observation.created_at)

    def _count(self, metric: Counter, job: JobView, by: int = 1) -> None:
        metric.labels(*self._labels.of_type(job.namespace, job.queue, job.type)).inc(by)

    def _reason_labels(self, job: JobView) -> tuple[str, ...]:
        return self._labels.of_reason(job.namespace, job.queue, job.type, job.reason)


class _Gauges(Collector):
    def __init__(
        self, stats: Callable[[], JobStats | None], leads: Callable[[], bool], labels: JobLabels
    ) -> None:
        self._stats = stats
        self._leads = leads
        self._labels = labels

    def collect(self) -> Iterator[MetricFamily]:
        stats = self._stats() if self._leads() else None
        if stats is None:
            return
        yield metric_family(jobs.JOBS, self._jobs(stats))
        yield metric_family(jobs.PARKED, self._by_kind(stats.parked, _add))
        yield metric_family(jobs.OLDEST_PARK_SECONDS, self._by_kind(stats.oldest_parks, max))
        queues = sorted(
            {(namespace, queue) for namespace, queue, _ in stats.counts} | set(stats.oldest_waits)
        )
        yield metric_family(
            jobs.OLDEST_SECONDS,
            self._aggregate({q: stats.oldest_waits.get(q, 0.0) for q in queues}, max),
        )
        if stats.capacities is not None:
            capacities = dict.fromkeys(queues, (0, 0)) | dict(stats.capacities)
            for spec, number in ((jobs.WORKERS, 0), (jobs.SLOTS, 1)):
                values = {queue: float(capacity[number]) for queue, capacity in capacities.items()}
                yield metric_family(spec, self._aggregate(values, _add))
        if stats.finished_limit is not None:
            yield metric_family(jobs.FINISHED_LIMIT, {(): stats.finished_limit})

    def _jobs(self, stats: JobStats) -> Samples:
        """Return the number of jobs by queue and phase, including phases without jobs."""
        counts: dict[tuple[str, ...], float] = {}
        for (namespace, queue, phase), count in stats.counts.items():
            labels = self._labels.of_queue((namespace, queue))
            if (*labels, phase.value) not in counts:
                counts |= {(*labels, other.value): 0.0 for other in Phase}
            counts[*labels, phase.value] += count
        return counts

    def _by_kind(
        self,
        values: Mapping[tuple[str, str, str], float],
        fold: Callable[[float, float], float],
    ) -> Samples:
        """Return what is known of parked jobs by queue and kind."""
        folded: dict[tuple[str, ...], float] = {}
        for (namespace, queue, kind), value in values.items():
            known = kind if kind in _WAIT_KINDS else OTHER_LABEL
            labels = (*self._labels.of_queue((namespace, queue)), known)
            folded[labels] = fold(folded[labels], value) if labels in folded else value
        return folded

    def _aggregate(
        self, values: Mapping[NamespacedName, float], fold: Callable[[float, float], float]
    ) -> Samples:
        folded: dict[tuple[str, ...], float] = {}
        for queue, value in values.items():
            labels = self._labels.of_queue(queue)
            folded[labels] = fold(folded[labels], value) if labels in folded else value
        return folded


def _add(first: float, second: float) -> float:
    return first + second
