"""The components that handle AsyncCronJobs, connected, and the loops that drive them."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TimeSlice
from asyncjob.names import CRON_JOBS
from asyncjob_operator.controllers.cron_job_controller import CronJobController, resync_cron_jobs
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
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.kopf_watch import watch_cron_jobs
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.loops import DEADLINE_BATCH, MAX_SLEEP, MAX_WATCH_PAUSE
from asyncjob_operator.settings import Settings
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()


READ_VERBS: Final = ("get", "list", "watch")


class CronJobs:
    """Watches schedules once all jobs are known, and acts on them while leading."""

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

    def start(
        self, tasks: TaskSupervisor, findings: Findings, restore_signals: Callable[[], None]
    ) -> None:
        """Start the loops, if schedules may be seen; kopf takes over the process's signals."""
        if not all(findings.allows(verb, CRON_JOBS) for verb in READ_VERBS):
            log.warning("cron jobs disabled: no permission to list asynccronjobs")
            return
        tasks.start("schedule dispatch", self.reconcilers.run)
        tasks.start("schedule deadlines", self._run_deadlines)
        tasks.start("schedule comparison", self._run_resync)
        restarted = self._metrics.watch_restarts.inc
        tasks.start(
            "kopf", lambda pulse: self._watch(restore_signals, pulse), restarted, MAX_WATCH_PAUSE
        )

    async def _watch(self, restore_signals: Callable[[], None], health: LoopHealth) -> None:
        """Watch; compare first, as no watch tells of what was deleted before it began."""
        await self._resync()
        access, namespaces = self._session.access, self._settings.namespaces
        with health.idle():  # kopf shows no bookmarks: what it misses, the comparison finds
            await watch_cron_jobs(access, namespaces, self._on_event, restore_signals)

    def _on_event(self, kind: str | None, obj: JsonObject) -> None:
        if kind == "DELETED":
            meta = child(obj, "metadata")
            self.controller.on_delete((text(meta, "namespace"), text(meta, "name")))
        else:
            self.controller.on_update(obj)

    async def _run_resync(self, health: LoopHealth) -> None:
        while True:
            with health.idle():
                await asyncio.sleep(self._settings.resync_interval)
            await self._resync()
            health.tick()

    async def _resync(self) -> None:
        for namespace in self._settings.watched_namespaces:
            await resync_cron_jobs(self._session, namespace, self.controller)

    async def _run_deadlines(self, health: LoopHealth) -> None:
        agenda, turns = self.controller.delaying_queue, TimeSlice()
        while True:
            health.tick()
            await agenda.wait(monotonic(), MAX_SLEEP)
            for uid in agenda.pop_due(monotonic(), DEADLINE_BATCH):
                self.controller.evaluate(uid)
                await turns.yield_if_due()
