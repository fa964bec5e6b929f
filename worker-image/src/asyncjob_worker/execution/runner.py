"""Runs claimed jobs: keeps the lease, runs the attempt, writes its outcome, calls the hooks.

It also knows which handlers are running, and stops those whose job has a cancel request.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from asyncjob.app import Resources, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.clock import boottime
from asyncjob_worker.execution.attempt import Attempt, AttemptServices, job_info_of
from asyncjob_worker.execution.hooks import HookEvents
from asyncjob_worker.isolation.executor import HandlerFuture
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import OutcomeWriter
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import AttemptTrace, Tracing, job_log_context

log = structlog.get_logger()


class JobRunner:
    """Runs the jobs of one worker process.

    `on_abandoned` is called when a handler has ignored its stop and its outcome is written,
    `on_exhausted` when every slot is held by such a handler.
    """

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        *,
        heartbeat: HeartbeatThread,
        outcome_writer: OutcomeWriter,
        on_exhausted: Callable[[], None],
        on_abandoned: Callable[[HeldJob], None],
        services: AttemptServices,
        events: HookEvents,
        metrics: Metrics,
        tracing: Tracing,
    ) -> None:
        self._app = app
        self._events = events
        self._settings = settings
        self._heartbeat = heartbeat
        self._outcome_writer = outcome_writer
        self._on_exhausted = on_exhausted
        self._on_abandoned = on_abandoned
        self._slots = settings.slots()
        self._services = services
        self._metrics = metrics
        self._tracing = tracing
        self.running_handlers = RunningHandlers(boottime, self._metrics.handler_ended)
        self._abandoned: set[HandlerFuture] = set()
        self._stopping: Stop | None = None
        self._closing = asyncio.Event()
        self.running: set[HeldJob] = set()
        self.cancel_watcher = CancelWatcher(self.running)

    @property
    def abandoned(self) -> int:
        """Number of slots held by handlers that have ignored their stop and still run."""
        return sum(not future.done() for future in tuple(self._abandoned))

    @property
    def outliving(self) -> set[HeldJob]:
        """The jobs whose handlers only the end of the process will end: leased until then."""
        return self.running & self.running_handlers.jobs

    def set_resources(self, resources: Resources) -> None:
        """Give handlers their resources, before the first job."""
        self._services = replace(self._services, resources=resources)

    async def run(self, held: HeldJob) -> None:
        """Run one job until its outcome is written, and until an abandoned handler has ended."""
        attempt = self._new_attempt(held)
        with self._tracing.attempt(held) as trace, job_log_context(job_info_of(held)):
            await self._run(held, attempt, trace)
        if attempt.abandoned is not None:
            if self._services.record is not None:
                self._services.record.abandoned(held)
            self._on_abandoned(held)
            await self._wait_for_abandoned(attempt.abandoned)

    def stop_all(self, why: Stop) -> None:
        """Stop all running handlers, and those of claims that are not answered yet."""
        self._stopping = why
        for held in list(self.running):
            held.stop(why)

    def fence_expired(self) -> None:
        """Stop the handlers whose lease may have expired, even if the heartbeat thread hangs."""
        for held in list(self.running):
            if not held.writing_outcome:
                held.fence_if_expired()

    def stop_waiting_for_abandoned(self) -> None:
        """Stop waiting for abandoned handlers: the worker drains."""
        self._closing.set()

    async def end_processes(self) -> None:
        """End the processes that handlers run in."""
        await self._services.executor.end_processes()

    def close(self) -> None:
        """Release the handler threads, without waiting for handlers that never end."""
        self._services.executor.close()

    def _new_attempt(self, held: HeldJob) -> Attempt:
        handler = self._app.handlers[held.job.type]
        on_start = partial(self._on_handler_started, held)
        return Attempt(held, handler, self._app, self._settings, self._services, on_start=on_start)

    async def _run(self, held: HeldJob, attempt: Attempt, trace: AttemptTrace) -> None:
        """Run the attempt and write its outcome, with its lease renewed all the while."""
        self.running.add(held)
        self._heartbeat.add(held)
        held.fence_if_expired()
        self._apply_earlier_stops(held)
        self._events.claimed(held)
        try:
            outcome = await attempt.run()
            if self._outlives_drain(held, attempt):
                trace.ended(None)
                return  # the heartbeat goes on: the job stays leased until the process ends
            trace.ended(await self._write_outcome(held, outcome))
        except Exception:
            self._remove(held)
            raise
        self._remove(held)

    def _apply_earlier_stops(self, held: HeldJob) -> None:
        """Apply stops that were decided before the claim was answered."""
        if self._stopping is not None:
            held.stop(self._stopping)
        held.set_deadline(self._services.steps.waits.server_time)
        if boottime() >= held.deadline_at:
            held.stop(Stop.PAST_DEADLINE)
        if self.cancel_watcher.is_cancel_requested(held.job.uid):
            held.stop(Stop.CANCELLED)

    def _on_handler_started(self, held: HeldJob, future: HandlerFuture) -> None:
        if self._services.record is not None:
            self._services.record.started(held, future)
        self._events.started(held)
        self.running_handlers.add(future, held)

    def _outlives_drain(self, held: HeldJob, attempt: Attempt) -> bool:
        """Return whether only the end of the process will end the handler.

        If its job were released before, another worker could run it beside this handler. The
        operator releases it once the container has ended.
        """
        return attempt.abandoned is not None and held.stopped is Stop.DRAINING

    async def _write_outcome(
        self, held: HeldJob, outcome: PhaseChange | None
    ) -> PhaseChange | None:
        """Write the outcome; return what is stored, None if the job is no longer ours."""
        if outcome is None:
            log.warning("attempt ended without an outcome", job=held.job.name, why=held.stopped)
            self._metrics.fenced(held.job.type)
            return None
        held.writing_outcome = True
        seconds = boottime() - held.started_at
        stored = await self._outcome_writer.write(held, outcome)
        if stored is None:
            self._metrics.fenced(held.job.type)
            return None
        self._metrics.finished(held.job.type, stored)
        self._events.ended(held, stored, seconds)
        return stored

    def _remove(self, held: HeldJob) -> None:
        self._heartbeat.remove(held)
        self.running.discard(held)

    def _is_exhausted(self) -> bool:
        """Return whether every slot is held by an abandoned handler; a drain ends those anyway."""
        return self.abandoned == self._slots and not self._closing.is_set()

    async def _wait_for_abandoned(self, future: HandlerFuture) -> None:
        self._abandoned.add(future)
        if self._is_exhausted():
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


OnHandlerEnd = Callable[[str, float], None]
"""Called with a handler's job type and the seconds that it ran."""


class RunningHandlers:
    """The handlers that run in one event loop. `clock` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], on_end: OnHandlerEnd) -> None:
        self._clock = clock
        self._on_end = on_end
        self._jobs: dict[asyncio.Future[object], HeldJob] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def futures(self) -> set[HandlerFuture]:
        """The futures of the handlers that still run."""
        return set(self._jobs)

    @property
    def jobs(self) -> set[HeldJob]:
        """The jobs whose handlers still run."""
        return set(self._jobs.values())

    def add(self, future: HandlerFuture, held: HeldJob) -> None:
        """Add a handler that has just been started; it is removed when it ends."""
        started, self._loop = self._clock(), future.get_loop()
        self._jobs[future] = held

        def end(_: HandlerFuture) -> None:
            del self._jobs[future]
            self._on_end(held.job.type, self._clock() - started)

        future.add_done_callback(end)

    def blocking_job(self) -> HeldJob | None:
        """Return the job whose handler is running in the event loop; called from any thread.

        None if no handler is, or if it is a task that a handler has started: asyncio does not know
        which task has started another.
        """
        if self._loop is None:
            return None
        task = asyncio.current_task(self._loop)
        return None if task is None else self._jobs.get(task)


class CancelWatcher:
    """Follows the queue's running jobs whose `spec.cancel` is set, and stops those that run here.

    It remembers them all, because a cancel request may arrive before the answer to our own claim.
    """

    def __init__(self, running: Collection[HeldJob]) -> None:
        self._running = running
        self._requested: set[str] = set()

    def is_cancel_requested(self, uid: str) -> bool:
        """Return whether the running job is to be cancelled."""
        return uid in self._requested

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Replace the known jobs by a list."""
        self._requested = {_uid(obj) for obj in objects}
        self._stop(self._requested)

    def apply(self, event: WatchEvent) -> None:
        """Apply a change of one job."""
        uid = _uid(event.object)
        if event.type == "DELETED":
            self._requested.discard(uid)
        else:
            self._requested.add(uid)
            self._stop({uid})

    def _stop(self, uids: AbstractSet[str]) -> None:
        for held in self._running:
            if held.job.uid in uids:
                held.stop(Stop.CANCELLED)


def cancel_watch_params(queue: str) -> dict[str, str]:
    """Return the query for the running jobs of a queue that have a cancel request."""
    phase = f"status.phase={Phase.RUNNING}"
    return {"fieldSelector": f"{phase},spec.queue={queue},spec.cancel=true"}


def _uid(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "uid")
