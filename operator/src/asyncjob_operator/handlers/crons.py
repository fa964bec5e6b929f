"""The parts that look after schedules, put together, and the loops that drive them."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.turns import Turns
from asyncjob.names import CRON_JOBS
from asyncjob_operator.apply.cron.actor import CronActor
from asyncjob_operator.apply.dispatch import Dispatch, Leadership
from asyncjob_operator.apply.notices import Notices
from asyncjob_operator.apply.patience import Patience
from asyncjob_operator.apply.todo import Todo
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.vitals import Pulse
from asyncjob_operator.handlers.kopf_watch import watch_schedules
from asyncjob_operator.handlers.loops import BATCH, LONGEST_BLIND, LONGEST_SLEEP
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.handlers.tasks import Tasks
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.observe.cron.listing import compare
from asyncjob_operator.observe.cron.schedules import Schedules
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()


VERBS: Final = ("get", "list", "watch")


class Crons:
    """Watches schedules once all jobs are known, and acts on them while leading."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        *,
        observer: Observer,
        notices: Notices,
        metrics: Metrics,
        containment: Containment,
        now: Callable[[], Moment],
    ) -> None:
        def saw_job(obj: JsonObject) -> None:
            observer.saw(obj, live=True)

        self._settings, self._session, self._metrics = settings, session, metrics
        todo = Todo()
        self.schedules = Schedules(
            settings.identity,
            observer.children,
            now,
            todo.add,
            keeps_history=settings.retention,
            containment=containment,
            long_memory=settings.retention_options.long_memory,
        )
        actor = CronActor(
            session,
            self.schedules,
            patience=Patience(settings.backoff_initial, settings.backoff_max),
            notices=notices,
            metrics=metrics,
            leads=leadership.leads,
            saw_job=saw_job,
        )
        self.dispatch = Dispatch(todo, actor, leadership, containment, self.schedules.look)

    def start(self, tasks: Tasks, findings: Findings, retake_signals: Callable[[], None]) -> None:
        """Start the loops, if schedules may be seen; kopf takes over the process's signals."""
        if not all(findings.may(verb, CRON_JOBS) for verb in VERBS):
            log.warning("schedules are not looked after: no permission to see asynccronjobs")
            return
        tasks.start("schedule dispatch", self.dispatch.run)
        tasks.start("schedule deadlines", self._keep_time)
        tasks.start("schedule comparison", self._keep_comparing)
        restarted = self._metrics.watch_restarts.inc
        tasks.start(
            "kopf", lambda pulse: self._watch(retake_signals, pulse), restarted, LONGEST_BLIND
        )

    async def _watch(self, retake_signals: Callable[[], None], pulse: Pulse) -> None:
        """Watch; compare first, as no watch tells of what was deleted before it began."""
        await self._compare()
        access, namespaces = self._session.access, self._settings.namespaces
        with pulse.idle():  # kopf shows no bookmarks: what it misses, the comparison finds
            await watch_schedules(access, namespaces, self._saw, retake_signals)

    def _saw(self, kind: str | None, obj: JsonObject) -> None:
        if kind == "DELETED":
            meta = child(obj, "metadata")
            self.schedules.lost((text(meta, "namespace"), text(meta, "name")))
        else:
            self.schedules.saw(obj)

    async def _keep_comparing(self, pulse: Pulse) -> None:
        while True:
            with pulse.idle():
                await asyncio.sleep(self._settings.resync_interval)
            await self._compare()
            pulse.beat()

    async def _compare(self) -> None:
        for namespace in self._settings.scopes:
            await compare(self._session, namespace, self.schedules)

    async def _keep_time(self, pulse: Pulse) -> None:
        agenda, turns = self.schedules.agenda, Turns()
        while True:
            pulse.beat()
            await agenda.sleep(monotonic(), LONGEST_SLEEP)
            for uid in agenda.pop_due(monotonic(), BATCH):
                self.schedules.look(uid)
                await turns.give()
