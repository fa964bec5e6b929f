"""Runs claimed jobs: keeps the lease, runs the attempt, reports its outcome."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from asyncjob.app import Resources, WorkerApp
from asyncjob.app.child_jobs import ChildJobs, NoChildJobs
from asyncjob.app.stop import Stop
from asyncjob.lifecycle.move import Move
from asyncjob_worker.at_work import AtWork
from asyncjob_worker.attempt import Attempt, Tools, describe
from asyncjob_worker.cancels import Cancels
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob
from asyncjob_worker.keeper import Keeper
from asyncjob_worker.logged import logged
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.offload.objects import ReadObject
from asyncjob_worker.payloads import nowhere
from asyncjob_worker.reporter import Reporter
from asyncjob_worker.settings import Settings
from asyncjob_worker.starts import Work
from asyncjob_worker.telling import Telling
from asyncjob_worker.tracing import NO_TRACING, AttemptTrace, Tracing

log = structlog.get_logger()


class JobRunner:
    """Runs the jobs of one worker process; `on_exhausted` is called when no slot is left."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        *,
        keeper: Keeper,
        reporter: Reporter,
        on_exhausted: Callable[[], None],
        on_abandoned: Callable[[HeldJob], None] = lambda _: None,
        telling: Telling | None = None,
        children: Callable[[HeldJob], ChildJobs] = lambda _: NoChildJobs(),
        read_object: ReadObject = nowhere,
        metrics: Metrics | None = None,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._app = app
        self._telling = telling or Telling.nobody()
        self._settings = settings
        self._keeper = keeper
        self._reporter = reporter
        self._on_exhausted = on_exhausted
        self._on_abandoned = on_abandoned
        self._slots = settings.slots()
        self._tools = replace(Tools.of(settings, read_object), children=children)
        self._metrics = metrics or Metrics()
        self._tracing = tracing
        self.at_work = AtWork(lease_seconds, self._metrics.handled)
        self._abandoned: set[Work] = set()
        self._stopping: Stop | None = None
        self._closing = asyncio.Event()
        self.running: set[HeldJob] = set()
        self.cancels = Cancels(self.running)

    @property
    def abandoned(self) -> int:
        """Slots that are held by handlers which ignored their stop and still run."""
        return sum(not work.done() for work in tuple(self._abandoned))

    def provide(self, resources: Resources) -> None:
        """Give handlers their resources, before the first job."""
        self._tools = replace(self._tools, resources=resources)

    async def run(self, held: HeldJob) -> None:
        """Run one job to its reported outcome; an abandoned handler keeps the caller waiting."""
        with self._tracing.attempt(held) as trace, logged(describe(held)):
            attempt = await self._run(held, trace)
        if attempt.abandoned is not None:
            self._on_abandoned(held)
            await self._outlast(attempt.abandoned)

    async def _run(self, held: HeldJob, trace: AttemptTrace) -> Attempt:
        """Run the attempt and report it, with its lease renewed all the while.

        What the end of the process finds still running stays leased until the process is gone.
        """
        handler = self._app.handlers[held.job.type]
        note = partial(self._note_work, held)
        attempt = Attempt(held, handler, self._app, self._settings, self._tools, on_start=note)
        self.running.add(held)
        self._keeper.keep(held)
        held.fence_if_late()
        self._stop_early(held)
        self._telling.claimed(held)
        try:
            move = await attempt.run()
            if self._outlives_the_drain(held, attempt):
                trace.ended(None)
                return attempt
            trace.ended(await self._report(held, move))
        except Exception:
            self._let_go(held)
            raise
        self._let_go(held)
        return attempt

    def _outlives_the_drain(self, held: HeldJob, attempt: Attempt) -> bool:
        """Return whether only the end of the process will end the handler.

        To release its job before would let another worker start it beside this handler. The
        operator releases it once the container has ended.
        """
        return attempt.abandoned is not None and held.stopped is Stop.DRAINING

    def _let_go(self, held: HeldJob) -> None:
        self._keeper.let_go(held)
        self.running.discard(held)

    def stop_all(self, why: Stop) -> None:
        """Tell all running handlers to stop, and those of claims yet to be answered."""
        self._stopping = why
        for held in list(self.running):
            held.stop(why)

    async def end_processes(self) -> None:
        """End the processes that handlers run in."""
        await self._tools.starts.end_processes()

    def close(self) -> None:
        """Let go of what handlers run in; one that never ends does not hold up the process."""
        self._tools.starts.close()

    def give_up_waiting(self) -> None:
        """Wait no longer for abandoned handlers: the worker drains."""
        self._closing.set()

    def _note_work(self, held: HeldJob, work: Work) -> None:
        self._telling.started(held)
        self.at_work.note(work, held)

    def _stop_early(self, held: HeldJob) -> None:
        """Apply what was decided before the claim's answer came."""
        if self._stopping is not None:
            held.stop(self._stopping)
        if self.cancels.is_wished(held.job.uid):
            held.stop(Stop.CANCELLED)

    async def _report(self, held: HeldJob, move: Move | None) -> Move | None:
        """Report an outcome; returns what is stored."""
        if move is None:
            log.warning("attempt ended without an outcome", job=held.job.name, why=held.stopped)
            self._metrics.fenced(held.job.type)
            return None
        held.reporting = True
        seconds = lease_seconds() - held.started_at
        stored = await self._reporter.report(held, move)
        if stored is None:
            self._metrics.fenced(held.job.type)
            return None
        self._metrics.finished(held.job.type, stored)
        self._telling.ended(held, stored, seconds)
        return stored

    async def _outlast(self, work: Work) -> None:
        self._abandoned.add(work)
        if self.abandoned == self._slots and not self._closing.is_set():
            log.error("every slot is held by an abandoned handler: the worker restarts")
            self._on_exhausted()
        closing = asyncio.ensure_future(self._closing.wait())
        either: set[asyncio.Future[Any]] = {work, closing}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if work.done():
            self._abandoned.discard(work)
