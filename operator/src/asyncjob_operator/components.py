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
from asyncjob_operator.controllers.job_controller import JobController
from asyncjob_operator.controllers.job_reconciler import JobReconciler
from asyncjob_operator.controllers.preconditions import CacheUpdates, PreconditionChecker
from asyncjob_operator.controllers.queue_status import JobStatsCollector, QueueStatusWriter
from asyncjob_operator.controllers.retention import RetentionController
from asyncjob_operator.controllers.stale_workers import StaleWorkerCollector
from asyncjob_operator.controllers.workqueue import (
    MAX_CONCURRENT_RECONCILES,
    ItemBackoff,
    Leadership,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.core.events import job_event
from asyncjob_operator.cron_jobs import CronJobs
from asyncjob_operator.kube.clock import Clock, monotonic
from asyncjob_operator.settings import Settings
from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.logs import RecoverySummary
from asyncjob_operator.telemetry.metrics import OperatorMetrics


class ReconcileEnqueuer:
    """The observer's listener."""

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
        """Put the job on the list, behind those of its lane."""
        self._job_queue.add(uid, lane)

    def dequeue(self, uid: str) -> None:
        """Take the job off the list."""
        self._job_queue.discard(uid)

    def enqueue_admission(self, queue: tuple[str, str]) -> None:
        """Put the queue on the list of those that need a round of admission."""
        self._admission_queue.add("/".join(queue))

    def on_dead_letter(self, job: JobView, message: str) -> None:
        """Tell people of a new dead letter, if it is this replica's turn to."""
        if self._leads():
            self._events.record(job_event(job, job.reason or "DeadLetter", message))


MAX_PER_LANE: Final = MAX_CONCURRENT_RECONCILES // 4
"""Of one kind of work in one namespace: enough to keep an API server busy, and no more than that,
because whoever writes next waits behind them there."""


class Components:
    """All parts of one process; nothing of it runs by itself."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        metrics: OperatorMetrics,
    ) -> None:
        todo, rounds = WorkQueue(max_per_lane=MAX_PER_LANE), WorkQueue(requeue_dirty=True)
        self.recovery_summary = RecoverySummary()
        now = Clock(session.server_time).now
        containment = self.containment = Containment(
            monotonic, lambda kind: metrics.objects_set_aside.labels(kind).inc()
        )
        self.events = EventRecorder(session, settings.identity, now, metrics, containment)
        desk = ReconcileEnqueuer(todo, rounds, self.events, leadership.leads)
        job_metrics = JobMetrics(metrics.registry, leadership.leads, monotonic)
        observer = self.job_controller = JobController(
            settings.options, now, desk, job_metrics, containment
        )
        actor = JobReconciler(
            session,
            observer,
            preconditions=PreconditionChecker(session, _cache_updates(observer)),
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            events=self.events,
            metrics=metrics,
            recovery_summary=self.recovery_summary,
            leads=leadership.leads,
            now=now,
            on_recovered=RecoveryBurstEvents(self.events.record, monotonic).on_recovered,
        )
        self.job_reconcilers = ReconcilePool(
            todo, actor, leadership, containment, observer.evaluate
        )
        allotment = ReservationController(
            session,
            AdmissionRounds(observer),
            now=now,
            leads=leadership.leads,
            enqueue=rounds.add,
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            metrics=metrics,
        )
        self.admission_reconcilers = ReconcilePool(rounds, allotment, leadership, containment)
        self.queue_status = QueueStatusWriter(
            session, observer.queue_stats.changed_statuses, leadership.leads, containment, monotonic
        )
        self.unserved_queue_events = UnservedQueueEvents(
            observer.queue_stats.oldest_waits,
            observer.worker_registry.capacity_by_queue,
            self.events.record,
        )
        self.cron_jobs = CronJobs(
            settings,
            session,
            leadership,
            job_controller=observer,
            events=self.events,
            metrics=metrics,
            containment=containment,
            now=now,
        )
        self.retention = RetentionController(
            session,
            observer.store,
            queue_of=observer.queues.view,
            options=settings.retention_options,
            rate=settings.retention_rate,
            interval=settings.retention_interval,
            now=now,
            leads=leadership.leads,
            record_event=self.events.record,
            is_needed=observer.dependency_graph.is_needed,
            metrics=metrics,
            containment=containment,
        )
        self.stale_workers = StaleWorkerCollector(
            session,
            settings.watched_namespaces,
            timeout=settings.worker_timeout,
            busy_pods=observer.store.busy_pods,
            clock=monotonic,
            leads=leadership.leads,
            metrics=metrics,
            containment=containment,
        )
        limit = settings.retention_options.namespace_limit if settings.retention else None
        self.job_stats = JobStatsCollector(observer, limit)
        job_metrics.expose(self.job_stats.stats)
        metrics.register_sources(
            leadership.leads,
            observer.store.by_phase,
            lambda: len(observer.delaying_queue),
            containment.counts_by_kind,
        )


def _cache_updates(controller: JobController) -> CacheUpdates:
    def take_job(obj: JsonObject) -> None:
        controller.on_update(obj, live=False)

    def take_lease(obj: JsonObject) -> None:
        controller.worker_pods.on_lease_update(obj)
        controller.worker_registry.on_lease_update(obj)

    return CacheUpdates(
        on_pod=controller.worker_pods.on_pod_update,
        on_lease=take_lease,
        on_lease_deleted=controller.worker_pods.on_lease_delete,
        on_job=take_job,
        on_job_deleted=controller.on_delete,
        is_current=controller.is_current,
    )
