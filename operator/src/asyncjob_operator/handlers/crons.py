"""The parts that look after schedules, put together, and the loop that time drives them with."""

import structlog

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob_operator.apply.cron.actor import CronActor
from asyncjob_operator.apply.dispatch import Dispatch, Leadership
from asyncjob_operator.apply.notices import Notices
from asyncjob_operator.apply.patience import Patience
from asyncjob_operator.apply.todo import Todo
from asyncjob_operator.handlers.following import Following
from asyncjob_operator.handlers.loops import BATCH, LONGEST_SLEEP
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.handlers.tasks import Tasks
from asyncjob_operator.kube.clock import moment, monotonic
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.observe.cron.schedules import Schedules
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()


class Crons:
    """Follows schedules once all jobs are known, and acts on them while leading."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        *,
        observer: Observer,
        notices: Notices,
        metrics: Metrics,
    ) -> None:
        def saw_job(obj: JsonObject) -> None:
            observer.saw(obj, live=True)

        todo = Todo()
        self.schedules = Schedules(
            settings.identity,
            observer.children,
            moment,
            todo.add,
            keeps_history=settings.retention,
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
        self.dispatch = Dispatch(todo, actor, leadership, self.schedules.look)

    def start(self, tasks: Tasks, following: Following, findings: Findings) -> None:
        """Start the loops, if schedules may be seen."""
        if not following.start_schedules(self.schedules, findings):
            log.warning("schedules are not looked after: no permission to see asynccronjobs")
            return
        tasks.start("schedule dispatch", self.dispatch.run)
        tasks.start("schedule deadlines", self._keep_time)

    async def _keep_time(self) -> None:
        agenda = self.schedules.agenda
        while True:
            await agenda.sleep(monotonic(), LONGEST_SLEEP)
            for uid in agenda.pop_due(monotonic(), BATCH):
                self.schedules.look(uid)
