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
from asyncjob.lifecycle.move import PhaseChange
from asyncjob_worker.at_work import RunningHandlers
from asyncjob_worker.attempt import Attempt, AttemptServices, job_info_of
from asyncjob_worker.cancels import CancelWatcher
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob
from asyncjob_worker.keeper import HeartbeatThread
from asyncjob_worker.logged import job_log_context
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.offload.objects import ReadObject
from asyncjob_worker.payloads import no_cluster
from asyncjob_worker.reporter import OutcomeWriter
from asyncjob_worker.settings import Settings
from asyncjob_worker.starts import HandlerFuture
from asyncjob_worker.telling import HookEvents
from asyncjob_worker.tracing import NO_TRACING, AttemptTrace, Tracing

log = structlog.get_logger()


class JobRunner:
    """Runs the jobs of one worker process; `on_exhausted` is called when no slot is left."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        *,
        heartbeat: HeartbeatThread,
        outcome_writer: OutcomeWriter,
        on_exhausted: Callable[[], None],
        on_abandoned: Callable[[HeldJob], None] = lambda _: None,
        events: HookEvents | None = None,
        children: Callable[[HeldJob], ChildJobs] = lambda _: NoChildJobs(),
        read_object: ReadObject = no_cluster,
        metrics: Metrics | None = None,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._app = app
        self._events = events or HookEvents.disabled()
        self._settings = settings
        self._heartbeat = heartbeat
        self._outcome_writer = outcome_writer
        self._on_exhausted = on_exhausted
        self._on_abandoned = on_abandoned
        self._slots = settings.slots()
        self._services = replace(
            AttemptServices.from_settings(settings, read_object), children=children
        )
        self._metrics = metrics or Metrics()
        self._tracing = tracing
        self.running_handlers = RunningHandlers(lease_seconds, self._metrics.handler_ended)
        self._abandoned: set[HandlerFuture] = set()
        self._stopping: Stop | None = None
        self._closing = asyncio.Event()
        self.running: set[HeldJob] = set()
        self.cancel_watcher = CancelWatcher(self.running)

    @property
    def abandoned(self) -> int:
        """Slots that are held by handlers which ignored their stop and still run."""
        return sum(not work.done() for work in tuple(self._abandoned))

    def set_resources(self, resources: Resources) -> None:
        """Give handlers their resources, before the first job."""
        self._services = replace(self._services, resources=resources)

    async def run(self, held: HeldJob) -> None:
        """Run one job to its reported outcome; an abandoned handler keeps the caller waiting."""
        with self._tracing.attempt(held) as trace, job_log_context(job_info_of(held)):
            attempt = await self._run(held, trace)
        if attempt.abandoned is not None:
            self._on_abandoned(held)
            await self._wait_for_abandoned(attempt.abandoned)

    async def _run(self, held: HeldJob, trace: AttemptTrace) -> Attempt:
        """Run the attempt and report it, with its lease renewed all the while.

        What the end of the process finds still running stays leased until the process is gone.
        """
        handler = self._app.handlers[held.job.type]
        note = partial(self._on_handler_started, held)
        attempt = Attempt(held, handler, self._app, self._settings, self._services, on_start=note)
        self.running.add(held)
        self._heartbeat.add(held)
        held.fence_if_expired()
        self._apply_earlier_stops(held)
        self._events.claimed(held)
        try:
            move = await attempt.run()
            if self._outlives_drain(held, attempt):
                trace.ended(None)
                return attempt
            trace.ended(await self._write_outcome(held, move))
        except Exception:
            self._remove(held)
            raise
        self._remove(held)
        return attempt

    def _outlives_drain(self, held: HeldJob, attempt: Attempt) -> bool:
        """Return whether only the end of the process will end the handler.

        To release its job before would let another worker start it beside this handler. The
        operator releases it once the container has ended.
        """
        return attempt.abandoned is not None and held.stopped is Stop.DRAINING

    def _remove(self, held: HeldJob) -> None:
        self._heartbeat.remove(held)
        self.running.discard(held)

    def stop_all(self, why: Stop) -> None:
        """Tell all running handlers to stop, and those of claims yet to be answered."""
        self._stopping = why
        for held in list(self.running):
            held.stop(why)

    async def end_processes(self) -> None:
        """End the processes that handlers run in."""
        await self._services.executor.end_processes()

    def close(self) -> None:
        """Let go of what handlers run in; one that never ends does not hold up the process."""
        self._services.executor.close()

    def stop_waiting_for_abandoned(self) -> None:
        """Wait no longer for abandoned handlers: the worker drains."""
        self._closing.set()

    def _on_handler_started(self, held: HeldJob, future: HandlerFuture) -> None:
        self._events.started(held)
        self.running_handlers.add(future, held)

    def _apply_earlier_stops(self, held: HeldJob) -> None:
        """Apply what was decided before the claim's answer came."""
        if self._stopping is not None:
            held.stop(self._stopping)
        if self.cancel_watcher.is_cancel_requested(held.job.uid):
            held.stop(Stop.CANCELLED)

    async def _write_outcome(self, held: HeldJob, move: PhaseChange | None) -> PhaseChange | None:
        """Report an outcome; returns what is stored."""
        if move is None:
            log.warning("attempt ended without an outcome", job=held.job.name, why=held.stopped)
            self._metrics.fenced(held.job.type)
            return None
        held.writing_outcome = True
        seconds = lease_seconds() - held.started_at
        stored = await self._outcome_writer.write(held, move)
        if stored is None:
            self._metrics.fenced(held.job.type)
            return None
        self._metrics.finished(held.job.type, stored)
        self._events.ended(held, stored, seconds)
        return stored

    async def _wait_for_abandoned(self, future: HandlerFuture) -> None:
        self._abandoned.add(future)
        if self.abandoned == self._slots and not self._closing.is_set():
            log.error("every slot is held by an abandoned handler: the worker restarts")
            self._on_exhausted()
        closing = asyncio.ensure_future(self._closing.wait())
        either: set[asyncio.Future[Any]] = {future, closing}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
        if future.done():
            self._abandoned.discard(future)
