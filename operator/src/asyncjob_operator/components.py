"""The composition root: every component of one operator, built and connected in one place."""

from collections.abc import Callable
from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.job_view import JobView
from asyncjob.names import ARRAYS, CRON_JOBS, QUEUES
from asyncjob_operator.cache.adapters import ObjectName
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.cache.queue_stats import QueueStatsCollector
from asyncjob_operator.controllers.admission import AdmissionRounds, ReservationController
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator
from asyncjob_operator.controllers.array_reconciler import ArrayReconciler
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import (
    EventRecorder,
    RecoveryStormEvents,
    UnservedQueueEvents,
)
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.job_informer import JobResync, SilentWatchDetector, WatchLag
from asyncjob_operator.controllers.job_reconciler import JobReconciler
from asyncjob_operator.controllers.preconditions import CacheUpdates, PreconditionChecker
from asyncjob_operator.controllers.queue_status import JobStatsCollector, QueueStatusWriter
from asyncjob_operator.controllers.retention import RemovalPace, RemovalPlanner, RetentionController
from asyncjob_operator.controllers.stale_workers import StaleWorkerCollector
from asyncjob_operator.controllers.workqueue import (
    MAX_CONCURRENT_RECONCILES,
    MAX_PER_NAMESPACE,
    DelayingQueue,
    ItemBackoff,
    Leadership,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.core.events import EventReason, job_event
from asyncjob_operator.core.now import Now
from asyncjob_operator.informers import Informers
from asyncjob_operator.kopf_collections import (
    array_collection,
    cron_job_collection,
    queue_collection,
)
from asyncjob_operator.kube.clock import Clock, current_time, monotonic
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.loops import ResyncTimer
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
        version_times: VersionTimes,
        metrics: OperatorMetrics,
    ) -> None:
        # Shared by the components below
        leads = leadership.leads
        now = self._now = Clock(session.server_time).now
        self._version_times = version_times
        self.recovery_summary = RecoverySummary()
        quarantine = self.quarantine = Quarantine(
            monotonic, lambda kind: metrics.objects_quarantined.labels(kind).inc()
        )
        self.events = EventRecorder(session, settings.identity, now, metrics, quarantine)

        # Jobs: evaluated whenever they change, and reconciled from a queue
        job_queue = WorkQueue(max_per_lane=MAX_PER_LANE)
        admission_queue = WorkQueue(requeue_dirty=True, max_per_lane=MAX_PER_NAMESPACE)

        def enqueue_admission(key: str) -> None:
            admission_queue.add(key, key.partition("/")[0])

        self.delaying_queue, self.array_delaying_queue = DelayingQueue(), DelayingQueue()
        caches = self.caches = JobCaches(
            now,
            version_times,
            enqueue_admission=lambda queue: enqueue_admission("/".join(queue)),
            evaluate_later=self.delaying_queue.add_all,
            evaluate_arrays_later=self.array_delaying_queue.add_all,
        )
        queue_stats = QueueStatsCollector(
            caches.store, caches.queues, caches.worker_registry, now, quarantine
        )
        job_metrics = JobMetrics(metrics.registry, leads, monotonic)

        def record_dead_letter(job: JobView, message: str) -> None:
            if leads():  # standbys leave that to the leader
                self.events.record(job_event(job, job.reason or EventReason.DEAD_LETTER, message))

        job_evaluator = self.job_evaluator = JobEvaluator(
            caches,
            self.delaying_queue,
            job_queue,
            on_dead_letter=record_dead_letter,
            options=settings.options,
            now=now,
            queue_stats=queue_stats,
            quarantine=quarantine,
            metrics=job_metrics,
        )
        self.job_resync = JobResync(session, job_evaluator, caches.store, quarantine)

        # Arrays, which jobs may wait for
        self.array_evaluator, self.array_reconcilers, preconditions = build_arrays(
            settings,
            session,
            leadership,
            caches,
            delaying_queue=self.array_delaying_queue,
            events=self.events,
            job_evaluator=job_evaluator,
            metrics=metrics,
            now=now,
            quarantine=quarantine,
        )

        # What is due for jobs
        recovery_storm_events = RecoveryStormEvents(self.events.record, monotonic)

        def on_recovered(namespace: str, reason: str) -> None:
            self.recovery_summary.add(reason)
            recovery_storm_events.on_recovered(namespace, reason)

        job_reconciler = JobReconciler(
            session,
            job_evaluator,
            preconditions=preconditions,
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            events=self.events,
            metrics=metrics,
            leads=leads,
            now=now,
            on_recovered=on_recovered,
        )
        self.job_reconcilers = ReconcilePool(
            job_queue, job_reconciler, leadership, quarantine, job_evaluator.evaluate
        )

        # Queues: admission to those with limits, their status, and those that nobody serves
        self.enqueue_admission = enqueue_admission
        self.admission_delaying_queue = DelayingQueue()
        reservations = ReservationController(
            session,
            AdmissionRounds(
                caches.admission_cache,
                caches.queues,
                caches.store,
                caches.worker_registry,
                job_evaluator,
            ),
            now=now,
            leads=leads,
            enqueue=enqueue_admission,
            delaying_queue=self.admission_delaying_queue,
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
        self.queue_status = QueueStatusWriter(
            session, queue_stats.changed_statuses, leads, quarantine, monotonic
        )
        self.unserved_queue_events = UnservedQueueEvents(
            queue_stats.oldest_waits, caches.worker_registry.capacity_by_queue, self.events.record
        )

        # Cron jobs
        cron_job_queue = WorkQueue(max_per_lane=MAX_PER_NAMESPACE)

        def enqueue_cron_job(uid: str) -> None:
            cron = cron_job_evaluator.locate(uid)
            cron_job_queue.add(uid, cron.namespace if cron else "")

        self.cron_job_delaying_queue = DelayingQueue()
        cron_job_evaluator = self.cron_job_evaluator = CronJobEvaluator(
            settings.identity,
            caches.scheduled_jobs,
            now,
            enqueue_cron_job,
            delaying_queue=self.cron_job_delaying_queue,
            quarantine=quarantine,
            prunes_history=settings.retention,
            dedup_window=settings.retention_options.dedup_window,
        )
        self.cron_job_reconcilers = ReconcilePool(
            cron_job_queue,
            CronJobReconciler(
                session,
                cron_job_evaluator,
                backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
                events=self.events,
                metrics=metrics,
                leads=leads,
                on_job=lambda obj: job_evaluator.on_update(obj, just_changed=True),
                clock=monotonic,
            ),
            leadership,
            quarantine,
            cron_job_evaluator.evaluate,
        )

        # Removal of finished jobs, and of the Leases of workers that are gone
        self.retention = RetentionController(
            session,
            RemovalPlanner(
                caches.store,
                queue_of=caches.queues.view,
                options=settings.retention_options,
                is_needed=caches.is_needed,
                feeds_parent=caches.dependency_graph.feeds_parent,
                now=now,
                quarantine=quarantine,
            ),
            RemovalPace(settings.retention_rate, settings.retention_interval),
            now=now,
            leads=leads,
            record_event=self.events.record,
            metrics=metrics,
            quarantine=quarantine,
        )
        self.stale_workers = StaleWorkerCollector(
            session,
            settings.watched_namespaces,
            timeout=settings.worker_timeout,
            busy_pods=caches.store.busy_pods,
            clock=monotonic,
            leads=leads,
            metrics=metrics,
            quarantine=quarantine,
        )

        # How objects reach the caches: worker pods and Leases by informers, queues, cron jobs and
        # arrays by kopf's events; jobs by the operator's own watch, or by kopf's as well
        self.informers = Informers(
            session,
            settings.watched_namespaces,
            quarantine,
            worker_pods=caches.worker_pods,
            worker_registry=caches.worker_registry,
        )
        self.kopf_collections = {
            QUEUES: queue_collection(
                session,
                settings.watched_namespaces,
                caches.queues,
                quarantine,
                settings.resync_interval,
            ),
            ARRAYS: array_collection(
                session,
                settings.watched_namespaces,
                self.array_evaluator,
                quarantine,
                settings.resync_interval,
            ),
            CRON_JOBS: cron_job_collection(
                session,
                settings.watched_namespaces,
                cron_job_evaluator,
                quarantine,
                settings.resync_interval,
            ),
        }
        self.job_resync_timer = ResyncTimer(settings.resync_interval)
        self.silence_detector = SilentWatchDetector()
        self.watch_lag = WatchLag(current_time)

        # What the metrics read on each scrape
        metrics.watch_lag.set_function(self.watch_lag.seconds)
        self.job_stats = JobStatsCollector(
            caches.store,
            queue_stats,
            caches.worker_registry,
            settings.retention_options.namespace_limit if settings.retention else None,
        )
        job_metrics.expose(self.job_stats.stats)
        metrics.register_sources(
            leads,
            caches.store.by_phase,
            lambda: len(self.delaying_queue),
            quarantine.counts_by_kind,
        )

    def sample_version(self, version: str) -> None:
        """Note that this resourceVersion is the newest now."""
        self._version_times.sample(version, self._now().wall)


def cache_updates(
    caches: JobCaches,
    evaluator: JobEvaluator,
    on_array: Callable[[JsonObject], None],
    on_array_deleted: Callable[[ObjectName], None],
) -> CacheUpdates:
    """Return where live reads that contradict the cache are stored."""

    def on_job(obj: JsonObject) -> None:
        evaluator.on_update(obj, just_changed=False)

    def on_lease(obj: JsonObject) -> None:
        caches.worker_pods.on_lease_update(obj)
        caches.worker_registry.on_lease_update(obj)

    return CacheUpdates(
        on_pod=caches.worker_pods.on_pod_read,
        on_pod_deleted=caches.worker_pods.on_pod_delete,
        on_lease=on_lease,
        on_lease_deleted=caches.worker_pods.on_lease_delete,
        on_job=on_job,
        on_job_deleted=evaluator.on_delete,
        on_array=on_array,
        on_array_deleted=on_array_deleted,
        is_current=caches.is_current,
    )


def build_arrays(
    settings: Settings,
    session: KubeSession,
    leadership: Leadership,
    caches: JobCaches,
    *,
    delaying_queue: DelayingQueue,
    events: EventRecorder,
    job_evaluator: JobEvaluator,
    metrics: OperatorMetrics,
    now: Callable[[], Now],
    quarantine: Quarantine,
) -> tuple[ArrayEvaluator, ReconcilePool, PreconditionChecker]:
    """Return what evaluates arrays, what reconciles them, and what reads for jobs and arrays."""
    queue = WorkQueue(max_per_lane=MAX_PER_NAMESPACE)
    evaluator = ArrayEvaluator(
        settings.identity,
        caches,
        now,
        lambda key: queue.add(key, key.partition("/")[0]),
        delaying_queue=delaying_queue,
        quarantine=quarantine,
        missing_timeout=settings.options.missing_dependency_timeout,
    )
    updates = cache_updates(caches, job_evaluator, evaluator.on_update, evaluator.on_delete)
    preconditions = PreconditionChecker(session, updates, monotonic)
    reconciler = ArrayReconciler(
        session,
        evaluator,
        preconditions=preconditions,
        backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
        events=events,
        metrics=metrics,
        leads=leadership.leads,
        on_job=lambda obj: job_evaluator.on_update(obj, just_changed=True),
        on_job_gone=job_evaluator.on_delete,
        clock=monotonic,
    )
    pool = ReconcilePool(queue, reconciler, leadership, quarantine, evaluator.evaluate)
    metrics.arrays.expose(
        lambda: evaluator.stats(caches.queues.is_paused) if leadership.leads() else None
    )
    return evaluator, pool, preconditions
