"""The composition root: every component of one operator, built and connected in one place."""

from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.job_view import JobView
from asyncjob_operator.controllers.admission import AdmissionRounds, ReservationController
from asyncjob_operator.controllers.events import (
    EventRecorder,
    RecoveryBurstEvents,
    UnservedQueueEvents,
)
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.job_reconciler import JobReconciler
from asyncjob_operator.controllers.preconditions import CacheUpdates, PreconditionChecker
from asyncjob_operator.controllers.queue_status import JobStatsCollector, QueueStatusWriter
from asyncjob_operator.controllers.retention import RetentionController
from asyncjob_operator.controllers.stale_workers import StaleWorkerCollector
from asyncjob_operator.controllers.workqueue import (
    MAX_CONCURRENT_RECONCILES,
    MAX_PER_NAMESPACE,
    ItemBackoff,
    Leadership,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.core.events import EventReason, job_event
from asyncjob_operator.cron_jobs import CronJobs
from asyncjob_operator.kube.clock import Clock, monotonic
from asyncjob_operator.settings import Settings
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.logs import RecoverySummary
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import Quarantine

MAX_PER_LANE: Final = MAX_CONCURRENT_RECONCILES // 4
"""Jobs of one lane (one policy in one namespace) that are reconciled at the same time.

That keeps an API server busy; with more, other writers would only wait longer behind them.
"""


class Components:
    """All components of one operator process; constructing them starts nothing."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        metrics: OperatorMetrics,
    ) -> None:
        # Shared by the components below
        leads = leadership.leads
        now = Clock(session.server_time).now
        self.recovery_summary = RecoverySummary()
        quarantine = self.quarantine = Quarantine(
            monotonic, lambda kind: metrics.objects_quarantined.labels(kind).inc()
        )
        self.events = EventRecorder(session, settings.identity, now, metrics, quarantine)

        # Jobs: evaluated whenever they change, and reconciled from a queue
        job_queue = WorkQueue(max_per_lane=MAX_PER_LANE)
        admission_queue = WorkQueue(requeue_dirty=True, max_per_lane=MAX_PER_NAMESPACE)
        job_metrics = JobMetrics(metrics.registry, leads, monotonic)
        job_evaluator = self.job_evaluator = JobEvaluator(
            settings.options,
            now,
            ReconcileEnqueuer(job_queue, admission_queue, self.events, leads),
            quarantine,
            job_metrics,
        )
        job_reconciler = JobReconciler(
            session,
            job_evaluator,
            preconditions=PreconditionChecker(session, _cache_updates(job_evaluator)),
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            events=self.events,
            metrics=metrics,
            recovery_summary=self.recovery_summary,
            leads=leads,
            now=now,
            on_recovered=RecoveryBurstEvents(self.events.record, monotonic).on_recovered,
        )
        self.job_reconcilers = ReconcilePool(
            job_queue, job_reconciler, leadership, quarantine, job_evaluator.evaluate
        )

        # Queues: admission to those with limits, their status, and those that nobody serves
        reservations = ReservationController(
            session,
            AdmissionRounds(job_evaluator),
            now=now,
            leads=leads,
            enqueue=lambda key: admission_queue.add(key, key.partition("/")[0]),
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            metrics=metrics,
        )
        self.admission_reconcilers = ReconcilePool(
            admission_queue,
            reservations,
            leadership,
            quarantine,
            # Its queue itself keeps the keys that are added while they are processed.
            on_done=lambda _queue: None,
        )
        queue_stats, workers = job_evaluator.queue_stats, job_evaluator.worker_registry
        self.queue_status = QueueStatusWriter(
            session, queue_stats.changed_statuses, leads, quarantine, monotonic
        )
        self.unserved_queue_events = UnservedQueueEvents(
            queue_stats.oldest_waits, workers.capacity_by_queue, self.events.record
        )

        # Schedules
        self.cron_jobs = CronJobs(
            settings,
            session,
            leadership,
            job_evaluator=job_evaluator,
            events=self.events,
            metrics=metrics,
            quarantine=quarantine,
            now=now,
        )

        # Removal of finished jobs, and of the Leases of workers that are gone
        self.retention = RetentionController(
            session,
            job_evaluator.store,
            queue_of=job_evaluator.queues.view,
            options=settings.retention_options,
            rate=settings.retention_rate,
            interval=settings.retention_interval,
            now=now,
            leads=leads,
            record_event=self.events.record,
            is_needed=job_evaluator.dependency_graph.is_needed,
            metrics=metrics,
            quarantine=quarantine,
        )
        self.stale_workers = StaleWorkerCollector(
            session,
            settings.watched_namespaces,
            timeout=settings.worker_timeout,
            busy_pods=job_evaluator.store.busy_pods,
            clock=monotonic,
            leads=leads,
            metrics=metrics,
            quarantine=quarantine,
        )

        # What the metrics read on each scrape
        self.job_stats = JobStatsCollector(
            job_evaluator,
            settings.retention_options.namespace_limit if settings.retention else None,
        )
        job_metrics.expose(self.job_stats.stats)
        metrics.register_sources(
            leads,
            job_evaluator.store.by_phase,
            lambda: len(job_evaluator.delaying_queue),
            quarantine.counts_by_kind,
        )


class ReconcileEnqueuer:
    """Listens to the job evaluator: enqueues what is to be reconciled, and records Events."""

    def __init__(
        self,
        job_queue: WorkQueue,
        admission_queue: WorkQueue,
        events: EventRecorder,
        leads: Callable[[], bool],
    ) -> None:
        self._job_queue = job_queue
        self._admission_queue = admission_queue
        self._events = events
        self._leads = leads

    def enqueue(self, uid: str, lane: str) -> None:
        """Queue the job behind the others of its lane."""
        self._job_queue.add(uid, lane)

    def dequeue(self, uid: str) -> None:
        """Remove the job from its queue."""
        self._job_queue.discard(uid)

    def enqueue_admission(self, queue: tuple[str, str]) -> None:
        """Queue an AsyncQueue for a round of admission."""
        self._admission_queue.add("/".join(queue), queue[0])

    def on_dead_letter(self, job: JobView, message: str) -> None:
        """Record an Event about a new dead letter; standbys leave that to the leader."""
        if self._leads():
            self._events.record(job_event(job, job.reason or EventReason.DEAD_LETTER, message))


def _cache_updates(evaluator: JobEvaluator) -> CacheUpdates:
    """Return where live reads that contradict the cache are stored."""

    def on_job(obj: JsonObject) -> None:
        evaluator.on_update(obj, just_changed=False)

    def on_lease(obj: JsonObject) -> None:
        evaluator.worker_pods.on_lease_update(obj)
        evaluator.worker_registry.on_lease_update(obj)

    return CacheUpdates(
        on_pod=evaluator.worker_pods.on_pod_read,
        on_pod_deleted=evaluator.worker_pods.on_pod_delete,
        on_lease=on_lease,
        on_lease_deleted=evaluator.worker_pods.on_lease_delete,
        on_job=on_job,
        on_job_deleted=evaluator.on_delete,
        is_current=evaluator.is_current,
    )
