"""The parts of one operator, put together."""

from typing import Final

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob_operator.apply.actor import Actor
from asyncjob_operator.apply.allotment import Allotment
from asyncjob_operator.apply.confirm import Confirmation, Correction
from asyncjob_operator.apply.desertion import Desertion
from asyncjob_operator.apply.dispatch import CONCURRENCY, Dispatch, Leadership
from asyncjob_operator.apply.farewell import Farewell
from asyncjob_operator.apply.notices import Notices
from asyncjob_operator.apply.patience import Patience
from asyncjob_operator.apply.queue_reports import QueueReports
from asyncjob_operator.apply.storms import Storms
from asyncjob_operator.apply.sweep import Sweep
from asyncjob_operator.apply.todo import Todo
from asyncjob_operator.handlers.census import Census
from asyncjob_operator.handlers.crons import Crons
from asyncjob_operator.handlers.desk import Desk
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.kube.clock import Clock, monotonic
from asyncjob_operator.observe.admissions import Admissions
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.metrics import Metrics
from asyncjob_operator.telemetry.tally import Tally

MOST_PER_LANE: Final = CONCURRENCY // 4
"""Of one kind of work in one namespace: enough to keep an API server busy, and no more than that,
because whoever writes next waits behind them there."""


class Parts:
    """All parts of one process; nothing of it runs by itself."""

    def __init__(
        self, settings: Settings, session: KubeSession, leadership: Leadership, metrics: Metrics
    ) -> None:
        todo, rounds = Todo(most_per_lane=MOST_PER_LANE), Todo(remember=True)
        self.tally = Tally()
        now = Clock(session.server_time).moment
        containment = self.containment = Containment(
            monotonic, lambda kind: metrics.set_aside.labels(kind).inc()
        )
        self.notices = Notices(session, settings.identity, now, metrics, containment)
        desk = Desk(todo, rounds, self.notices, leadership.leads)
        job_metrics = JobMetrics(metrics.registry, leadership.leads, monotonic)
        observer = self.observer = Observer(settings.options, now, desk, job_metrics, containment)
        actor = Actor(
            session,
            observer,
            confirmation=Confirmation(session, _correction(observer)),
            patience=Patience(settings.backoff_initial, settings.backoff_max),
            notices=self.notices,
            metrics=metrics,
            tally=self.tally,
            leads=leadership.leads,
            now=now,
            on_recovered=Storms(self.notices.tell, monotonic).recovered,
        )
        self.dispatch = Dispatch(todo, actor, leadership, containment, observer.look)
        allotment = Allotment(
            session,
            Admissions(observer),
            now=now,
            leads=leadership.leads,
            again=rounds.add,
            patience=Patience(settings.backoff_initial, settings.backoff_max),
            metrics=metrics,
        )
        self.admission = Dispatch(rounds, allotment, leadership, containment)
        self.queue_reports = QueueReports(
            session, observer.survey.news, leadership.leads, containment, monotonic
        )
        self.desertion = Desertion(
            observer.survey.ages, observer.roll_calls.crews, self.notices.tell
        )
        self.crons = Crons(
            settings,
            session,
            leadership,
            observer=observer,
            notices=self.notices,
            metrics=metrics,
            containment=containment,
            now=now,
        )
        self.sweep = Sweep(
            session,
            observer.store,
            queue_of=observer.queues.view,
            options=settings.retention_options,
            rate=settings.retention_rate,
            interval=settings.retention_interval,
            now=now,
            leads=leadership.leads,
            tell=self.notices.tell,
            needed=observer.kinship.is_needed,
            metrics=metrics,
            containment=containment,
        )
        self.farewell = Farewell(
            session,
            settings.scopes,
            timeout=settings.worker_timeout,
            busy=observer.store.holders,
            clock=monotonic,
            leads=leadership.leads,
            metrics=metrics,
            containment=containment,
        )
        limit = settings.retention_options.namespace_limit if settings.retention else None
        self.census = Census(observer, limit)
        job_metrics.show(self.census.look)
        metrics.read(
            leadership.leads,
            observer.store.by_phase,
            lambda: len(observer.agenda),
            containment.by_kind,
        )


def _correction(observer: Observer) -> Correction:
    def take_job(obj: JsonObject) -> None:
        observer.saw(obj, live=False)

    def take_lease(obj: JsonObject) -> None:
        observer.workers.saw_lease(obj)
        observer.roll_calls.saw_lease(obj)

    return Correction(
        pod=observer.workers.saw_pod,
        lease=take_lease,
        lease_gone=observer.workers.lost_lease,
        job=take_job,
        job_gone=observer.lost,
        is_current=observer.is_current,
    )
