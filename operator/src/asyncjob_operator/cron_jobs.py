"""The components that handle AsyncCronJobs, connected, and the loops that drive them."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TimeSlice
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob_operator.controllers.cron_job_controller import (
    CronJobController,
    CronJobStore,
    resync_cron_jobs,
)
from asyncjob_operator.controllers.cron_job_reconciler import CronJobReconciler
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.job_controller import JobController
from asyncjob_operator.controllers.workqueue import (
    ItemBackoff,
    Leadership,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.informers import informer_name, start_informer
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
    """Watches schedules once all jobs are known, and acts on them while leading.

    `names` are those of its watches, once they are started.
    """

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

        self.names: list[str] = []
        self._settings, self._session, self._metrics = settings, session, metrics
        todo = WorkQueue()
        self.controller = CronJobController(
            settings.identity,
            job_controller.scheduled_jobs,
            now,
            todo.add,
            prunes_history=settings.retention,
            containment=containment,
            dedup_window=settings.retention_options.dedup_window,
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
        tasks.start("schedule comparison", self._run_resync)
        for namespace in self._settings.watched_namespaces:
            name = informer_name("schedules", namespace)
            path = collection_path(namespace, CRON_JOBS)
            store = CronJobStore(self.controller, namespace)
            start_informer(tasks, self._session, name, path=path, store=store)
            self.names.append(name)

    async def _run_resync(self, health: LoopHealth) -> None:
        while True:
            with health.idle():
                await asyncio.sleep(self._settings.resync_interval)
            for namespace in self._settings.watched_namespaces:
                try:
                    repaired = await resync_cron_jobs(self._session, namespace, self.controller)
                except ApiError as error:
                    health.attempted()
                    log.warning("schedules not compared", namespace=namespace, error=str(error))
                    continue
                health.tick()
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
