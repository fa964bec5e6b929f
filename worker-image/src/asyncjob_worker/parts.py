"""The parts of a worker process and how they are wired."""

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from asyncjob.app import WorkerApp, outcomes
from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.claim import Holder
from asyncjob.lifecycle.move import Move
from asyncjob_worker.announcement import Announcement
from asyncjob_worker.announcer import Announcer
from asyncjob_worker.backlog import Backlog, deal
from asyncjob_worker.children import AT_A_TIME, AttemptChildren
from asyncjob_worker.choice import Choice
from asyncjob_worker.claimer import Claimer
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.enforcement import Enforcement
from asyncjob_worker.feed import Feed
from asyncjob_worker.held import HeldJob
from asyncjob_worker.hooks import Hooks
from asyncjob_worker.keeper import Keeper
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.pulse import Pulse
from asyncjob_worker.queue_view import QueueView
from asyncjob_worker.reporter import Reporter
from asyncjob_worker.roster import Roster
from asyncjob_worker.runner import JobRunner
from asyncjob_worker.settings import Settings
from asyncjob_worker.slots import Slots
from asyncjob_worker.telling import Telling
from asyncjob_worker.tracing import NO_TRACING, Tracing

log = structlog.get_logger()


class Parts:
    """All parts of one worker process; `Worker` starts and stops them."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        session: KubeSession,
        holder: Holder,
        *,
        on_exhausted: Callable[[], None],
        on_failure: Callable[[], None],
        metrics: Metrics,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        access = session.access
        self._me = holder.worker
        self.pulse = Pulse()
        self.keeper = Keeper(
            access.kubeconfig,
            access.namespace,
            settings.report_interval,
            self.pulse,
            metrics,
            in_the_way=self._in_the_way,
        )
        self.announcer = Announcer(session, _announcement(app, settings, holder))
        limits = {name: one.concurrency for name, one in app.handlers.items() if one.concurrency}
        self.backlog = Backlog(
            steal_after=settings.steal_after, limit=settings.max_backlog, limited=limits
        )
        self.roster = Roster(holder, settings.announce_interval, lease_seconds, self._deal)
        self.queue = QueueView(self._wake, self._look_again)
        self.hooks = Hooks(app.hooks)
        self.telling = Telling(self.hooks, holder, access.namespace, settings)
        self.runner = JobRunner(
            app,
            settings,
            keeper=self.keeper,
            reporter=Reporter(session, _refused),
            on_exhausted=on_exhausted,
            on_abandoned=self._freed,
            read_object=session.get,
            metrics=metrics,
            tracing=tracing,
            telling=self.telling,
            children=partial(AttemptChildren, session, gate=asyncio.Semaphore(AT_A_TIME)),
        )
        self.feed = Feed(
            session,
            self.backlog,
            queue=settings.queue,
            types=app.handlers,
            clock=lease_seconds,
            on_work=self._wake,
            on_watch=metrics.watch_begun("jobs"),
        )
        choice = Choice(
            backlog=self.backlog,
            queue=self.queue,
            roster=self.roster,
            clock=lease_seconds,
            look_again=self.feed.look_again,
            limits=limits,
        )
        self.enforcement = Enforcement(session, required=settings.require_policy)
        self.claimer = Claimer(
            session, app, self.queue, holder, self.enforcement, lateness=self.keeper.lateness
        )
        self.slots = Slots(
            settings.slots(),
            choice=choice,
            claimer=self.claimer,
            run_job=self.runner.run,
            on_failure=on_failure,
        )

    def _freed(self, held: HeldJob) -> None:
        self.slots.freed(held)

    def _in_the_way(self) -> HeldJob | None:
        return self.runner.at_work.in_the_way()

    def _wake(self) -> None:
        self.slots.wake()

    def _look_again(self) -> None:
        self.feed.look_again()

    def _deal(self) -> None:
        log.info("workers of the queue changed", live=len(self.roster.live))
        self.backlog.deal_anew(deal(self._me, self.roster.live), lease_seconds())
        self._wake()


def _announcement(app: WorkerApp, settings: Settings, holder: Holder) -> Announcement:
    return Announcement(
        holder,
        settings.queue,
        settings.slots(),
        sorted(app.handlers),
        settings.announce_interval,
    )


def _refused(held: HeldJob, move: Move, error: ApiError) -> Move:
    return outcomes.refused_by_store(held.job, move, error, now=now_text())
