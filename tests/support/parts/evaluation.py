"""A `JobEvaluator` on caches of its own, connected as `Components` connects them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from asyncjob.lifecycle.job_view import JobView
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.cache.queue_stats import QueueStatsCollector
from asyncjob_operator.controllers.admission import AdmissionRounds
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue, WorkQueue
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.quarantine import Quarantine
from support.parts import vitals
from support.parts.callbacks import ignore


@dataclass(frozen=True)
class Evaluation:
    """The evaluator, and what it was made from."""

    evaluator: JobEvaluator
    caches: JobCaches
    job_queue: WorkQueue
    delaying_queue: DelayingQueue
    queue_stats: QueueStatsCollector

    @property
    def queued(self) -> dict[str, str]:
        """The UIDs in the work queue, longest queued first, with their lanes."""
        return dict(self.job_queue._lane_of)

    def admission_rounds(self) -> AdmissionRounds:
        """Return what plans rounds of admission from the same caches."""
        return AdmissionRounds(
            self.caches.admission_cache,
            self.caches.queues,
            self.caches.store,
            self.caches.worker_registry,
            self.evaluator,
        )


def evaluation(
    now: Callable[[], Now],
    *,
    on_dead_letter: Callable[[JobView, str], None] = ignore,
    options: DecisionOptions | None = None,
    enqueue_admission: Callable[[tuple[str, str]], None] = ignore,
    evaluate_arrays_later: Callable[[Iterable[str]], None] = ignore,
    quarantine: Quarantine | None = None,
    metrics: JobMetrics | None = None,
) -> Evaluation:
    """Return an evaluator; without `metrics` it counts nothing, as a standby."""
    quarantine = quarantine or vitals.quarantine()
    job_queue, delaying_queue = WorkQueue(), DelayingQueue()
    caches = JobCaches(
        now,
        VersionTimes(),
        enqueue_admission=enqueue_admission,
        evaluate_later=delaying_queue.add_all,
        evaluate_arrays_later=evaluate_arrays_later,
    )
    queue_stats = QueueStatsCollector(
        caches.store, caches.queues, caches.worker_registry, now, quarantine
    )
    evaluator = JobEvaluator(
        caches,
        delaying_queue,
        job_queue,
        on_dead_letter=on_dead_letter,
        options=options or DecisionOptions(),
        now=now,
        queue_stats=queue_stats,
        quarantine=quarantine,
        metrics=metrics or JobMetrics(CollectorRegistry(), lambda: False, lambda: now().monotonic),
    )
    return Evaluation(evaluator, caches, job_queue, delaying_queue, queue_stats)
