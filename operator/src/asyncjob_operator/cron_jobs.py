"""The components that handle AsyncCronJobs, connected, and the loops that drive them."""

from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.informer import list_into
from asyncjob.kube.pacing import TimeSlice
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob_operator.cache.adapters import InformerStore
from asyncjob_operator.controllers.cron_job_controller import (
    CronJobController,
    CronJobStore,
    resync_cron_jobs,
)
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.job_controller import JobController
from asyncjob_operator.controllers.workqueue import (
    MAX_PER_NAMESPACE,
    ItemBackoff,
    Leadership,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.kopf_collections import KopfCollection
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.loops import DEADLINE_BATCH, MAX_SLEEP
from asyncjob_operator.settings import Settings
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()


READ_VERBS: Final = ("get", "list", "watch")


class CronJobs:
    """Takes schedules once all jobs are known, and acts on them while leading."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        *,
        job_controller: JobController,
        events: EventRecorder,
        metrics: OperatorMetrics,
        containment: Containment,
        now: Callable[[], Now],
    ) -> None:
        def saw_job(obj: JsonObject) -> None:
            job_controller.on_update(obj, live=True)

        def enqueue(uid: str) -> None:
            cron = self.controller.locate(uid)
            todo.add(uid, cron.namespace if cron else "")

        self._session = session
        todo = WorkQueue(max_per_lane=MAX_PER_NAMESPACE)
        self.controller = CronJobController(
            settings.identity,
            job_controller.scheduled_jobs,
            now,
            enqueue,
            prunes_history=settings.retention,
            containment=containment,
            dedup_window=settings.retention_options.dedup_window,
        )
        self.collection = KopfCollection(
            "schedules",
            {
                namespace: CronJobStore(self.controller, namespace)
                for namespace in settings.watched_namespaces
            },
            self._resync,
            settings.resync_interval,
        )
        actor = CronJobReconciler(
            session,
            self.controller,
            backoff=ItemBackoff(settings.backoff_initial, settings.backoff_max),
            events=events,
            metrics=metrics,
            leads=leadership.leads,
            on_job=saw_job,
        )
        self.reconcilers = ReconcilePool(
            todo, actor, leadership, containment, self.controller.evaluate
        )

    def start(self, tasks: TaskSupervisor, findings: Findings) -> None:
        """Start the loops, if schedules may be seen."""
        if not all(findings.allows(verb, CRON_JOBS) for verb in READ_VERBS):
            log.warning("cron jobs disabled: no permission to list asynccronjobs")
            return
        tasks.start("schedule dispatch", self.reconcilers.run)
        tasks.start("schedule deadlines", self._run_deadlines)
        self.collection.start(tasks)

    async def _resync(self, namespace: str | None, store: InformerStore) -> None:
        """List everything once; afterwards metadata, and what differs is read live."""
        if not store.synced.is_set():
            await list_into(self._session, collection_path(namespace, CRON_JOBS), store)
            return
        repaired = await resync_cron_jobs(self._session, namespace, self.controller)
        if repaired:
            log.info("schedules compared", namespace=namespace, repaired=repaired)

    async def _run_deadlines(self, health: LoopHealth) -> None:
        agenda, turns = self.controller.delaying_queue, TimeSlice()
        while True:
            health.tick()
            await agenda.wait(monotonic(), MAX_SLEEP)
            for uid in agenda.pop_due(monotonic(), DEADLINE_BATCH):
                self.controller.evaluate(uid)
                await turns.yield_if_due()
