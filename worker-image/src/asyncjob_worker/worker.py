"""The worker process: wires its parts, and starts and stops them in the written order.

Start: announce → heartbeats → watches of queue, workers, cancels and jobs → slots.
Stop: claim no more → withdraw → let handlers end within the grace period → tell the rest to stop
and release them → end the watches → end heartbeats.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

import structlog

from asyncjob.app import WorkerApp
from asyncjob.kube import KubeSession
from asyncjob.kube.follow import follow
from asyncjob.lifecycle.claim import Holder
from asyncjob.lifecycle.move import Move
from asyncjob.names import JOBS, QUEUES, collection
from asyncjob_worker import outcomes
from asyncjob_worker.announcement import Announcement, leases_path
from asyncjob_worker.backlog import Backlog, deal
from asyncjob_worker.cancels import Cancels, cancel_params
from asyncjob_worker.claimer import Claimer
from asyncjob_worker.clock import lease_seconds, now_text
from asyncjob_worker.feed import Feed
from asyncjob_worker.held import HeldJob, Stop
from asyncjob_worker.keeper import Keeper
from asyncjob_worker.queue_view import QueueView
from asyncjob_worker.reporter import Reporter
from asyncjob_worker.roster import Roster, announce, keep_announcing, roster_params, withdraw
from asyncjob_worker.runner import JobRunner
from asyncjob_worker.settings import Settings
from asyncjob_worker.slots import Slots

log = structlog.get_logger()


class Worker:
    """One worker process."""

    def __init__(
        self, app: WorkerApp, settings: Settings, session: KubeSession, holder: Holder
    ) -> None:
        self._settings = settings
        self._session = session
        self._holder = holder
        self._stopping = asyncio.Event()
        self._exhausted = False
        self._backlog = Backlog(steal_after=settings.steal_after, limit=settings.max_backlog)
        self._queue = QueueView(self._wake)
        self._roster = Roster(holder, settings.announce_interval, lease_seconds, self._deal)
        access = session.access
        self._keeper = Keeper(access.kubeconfig, access.namespace, settings.report_interval)
        self._runner = JobRunner(
            app,
            settings,
            keeper=self._keeper,
            reporter=Reporter(session, _refused),
            on_exhausted=self._restart,
        )
        self._feed = Feed(
            session,
            self._backlog,
            queue=settings.queue,
            types=app.handlers,
            clock=lease_seconds,
            on_work=self._wake,
        )
        self._slots = Slots(
            settings.slots(),
            backlog=self._backlog,
            queue=self._queue,
            claimer=Claimer(
                session, app, self._queue, holder, require_policy=settings.require_policy
            ),
            run_job=self._runner.run,
            look_again=self._feed.look_again,
        )
        self._announcement = Announcement(
            holder,
            settings.queue,
            settings.slots(),
            sorted(app.handlers),
            settings.announce_interval,
        )

    def stop(self) -> None:
        """Begin the graceful stop."""
        self._stopping.set()

    async def run(self) -> bool:
        """Work until stopped; returns False if the process should be started anew."""
        await announce(self._session, self._session.access.namespace, self._announcement)
        self._keeper.start()
        log.info("worker started", queue=self._settings.queue, worker=self._holder.worker)
        stop = asyncio.ensure_future(self._stopping.wait())
        slots = asyncio.ensure_future(self._slots.run())
        watches = [asyncio.ensure_future(work) for work in self._watches()]
        try:
            await asyncio.wait({stop, slots, *watches}, return_when=asyncio.FIRST_COMPLETED)
            await self._drain(slots)
        finally:
            await _end([stop, slots, *watches])
            self._keeper.stop()
            self._runner.close()
        log.info("worker stopped", worker=self._holder.worker)
        return not self._exhausted

    def _watches(self) -> Iterable[Coroutine[None, None, None]]:
        session, settings = self._session, self._settings
        namespace = session.access.namespace
        this_queue = {"fieldSelector": f"metadata.name={settings.queue}"}
        cancels = Cancels(self._runner.running)
        yield follow(session, collection(namespace, QUEUES), self._queue, this_queue)
        yield follow(session, leases_path(namespace), self._roster, roster_params(settings.queue))
        yield follow(session, collection(namespace, JOBS), cancels, cancel_params(settings.queue))
        yield keep_announcing(session, namespace, self._announcement, self._roster)
        yield self._feed.run()

    async def _drain(self, slots: asyncio.Future[None]) -> None:
        running = len(self._runner.running)
        log.info("worker draining", running=running, grace=self._settings.grace)
        self._slots.drain()
        await withdraw(self._session, self._session.access.namespace, self._announcement)
        await asyncio.wait({slots}, timeout=0 if self._exhausted else self._settings.grace)
        self._runner.stop_all(Stop.DRAINING)
        await asyncio.wait({slots}, timeout=self._settings.stop_wait * 2)

    def _restart(self) -> None:
        self._exhausted = True
        self.stop()

    def _wake(self) -> None:
        self._slots.wake()

    def _deal(self) -> None:
        log.info("workers of the queue changed", live=len(self._roster.live))
        ranks = deal(self._holder.worker, self._roster.live)
        self._backlog.deal_anew(ranks, lease_seconds())
        self._wake()


def _refused(held: HeldJob, message: str) -> Move:
    return outcomes.result_refused(held.job, message, now=now_text())


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel what still runs, and raise the first error of what ended by itself."""
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise _first(ended)


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
