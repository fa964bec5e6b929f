"""The components that handle AsyncCronJobs, connected, and the loops that drive them."""

from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.informer import list_into
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob_operator.cache.adapters import InformerStore
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.controllers.cron_job_evaluator import (
    CronJobEvaluator,
    CronJobStore,
    resync_cron_jobs,
)
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import (
    MAX_PER_NAMESPACE,
    DelayingQueue,
    ItemBackoff,
    Leadership,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.kopf_collections import KopfCollection
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.loops import UnmeasuredRequeues, run_requeue_timer
from asyncjob_operator.settings import Settings
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import Quarantine

log = structlog.get_logger()


READ_VERBS: Final = ("get", "list", "watch")


class CronJobs:
    """Takes schedules once all jobs are known, and acts on them while leading.

    `on_job` is called with each job that a write has created or changed.
    """

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        *,
        scheduled_jobs: ScheduledJobCache,
        on_job: Callable[[JsonObject], None],
        events: EventRecorder,
        metrics: OperatorMetrics,
        quarantine: Quarantine,
        now: Callable[[], Now],
    ) -> None:
        def enqueue(uid: str) -> None:
            cron = self.evaluator.locate(uid)
            queue.add(uid, cron.namespace if cron else "")

        self._session = session
        self._quarantine = quarantine
        self._delaying_queue = DelayingQueue()
        queue = WorkQueue(max_per_lane=MAX_PER_NAMESPACE)
        self.evaluator = CronJobEvaluator(
            settings.identity,
            scheduled_jobs,
            now,
            enqueue,
            delaying_queue=self._delaying_queue,
            quarantine=quarantine,
            prunes_history=settings.retention,
            dedup_window=settings.retention_options.dedup_window,
        )
        self.collection = KopfCollection(
            "schedules",
            {
                namespace: CronJobStore(self.evaluator, namespace, quarantine)
                for namespace in settings.watched_namespaces
            },
            self._resync,
            settings.resync_interval,
        )
        reconciler = CronJobReconciler(
            session,
            self.evaluator,
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            events=events,
            metrics=metrics,
            leads=leadership.leads,
            on_job=on_job,
            clock=monotonic,
        )
        self.reconcilers = ReconcilePool(
            queue, reconciler, leadership, quarantine, self.evaluator.evaluate
        )

    def start(self, tasks: TaskSupervisor, findings: Findings) -> None:
        """Start the loops, if schedules may be seen."""
        if not all(findings.allows(verb, CRON_JOBS) for verb in READ_VERBS):
            log.warning("cron jobs disabled: no permission to list asynccronjobs")
            return
        tasks.start("schedule reconcilers", self.reconcilers.run)
        tasks.start("schedule requeue timer", self._run_requeue_timer)
        self.collection.start(tasks)

    async def _resync(self, namespace: str | None, store: InformerStore) -> None:
        """List everything once; afterwards metadata, and what differs is read live."""
        if not store.synced.is_set():
            await list_into(self._session, collection_path(namespace, CRON_JOBS), store)
            return
        repaired = await resync_cron_jobs(
            self._session, namespace, self.evaluator, self._quarantine
        )
        if repaired:
            log.info("schedules resynced", namespace=namespace, repaired=repaired)

    async def _run_requeue_timer(self, health: LoopHealth) -> None:
        await run_requeue_timer(
            self._delaying_queue, self.evaluator.evaluate, UnmeasuredRequeues(), health
        )
