"""Emits events about jobs and the worker to the app's hooks.

No slot and no lease ever waits for a hook: each hook has a queue of its own and gets one event at a
time. Events that do not fit into its queue are dropped.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from asyncjob.app import Resources
from asyncjob.app.events import Event, Hook, HookEvent, JobEnded, JobEvent, WorkerEvent
from asyncjob.daemon_threads import run_in_daemon_thread
from asyncjob.json_types import as_object, opt_number, opt_text, text
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.execution.attempt import job_info_of
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.settings import Settings

log = structlog.get_logger()

HOOK_SECONDS: Final = 5.0
"""How long a hook may take for one event."""

FLUSH_SECONDS: Final = 2.0
"""How long all hooks together may take for the events that are left at the end."""

MAX_WAITING: Final = 1000
"""Greatest number of events that wait for one hook; further ones are dropped, and counted in the
log."""

_EVENT_OF = {
    Phase.SUCCEEDED: Event.SUCCEEDED,
    Phase.RETRYING: Event.RETRIED,
    Phase.DEAD_LETTER: Event.DEAD_LETTERED,
    Phase.CANCELLED: Event.CANCELLED,
    Phase.QUEUED: Event.RELEASED,
    Phase.SCHEDULED: Event.PARKED,
    Phase.PENDING: Event.PARKED,
}
"""By where a worker may bring a running job: all of `targets_of(Phase.RUNNING)`."""


class Hooks:
    """All hooks of one worker process; each may take `seconds` for one event."""

    def __init__(self, hooks: Sequence[Hook], *, seconds: float = HOOK_SECONDS) -> None:
        self._hooks = hooks
        self._seconds = seconds
        self._queues: list[_HookQueue] = []

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def start(self, resources: Resources) -> None:
        """Start delivering events; those emitted before are lost."""
        self._queues = [_HookQueue(hook, resources, self._seconds) for hook in self._hooks]

    def emit(self, event: HookEvent) -> None:
        """Queue the event for all hooks that handle it."""
        for queue in self._queues:
            queue.put(event)

    async def close(self, seconds: float = FLUSH_SECONDS) -> int:
        """Deliver what is left within `seconds`; return how many hooks still run after that."""
        if not self._queues:
            return 0
        queues, self._queues = self._queues, []
        for queue in queues:
            queue.finish()
        await asyncio.wait({queue.task for queue in queues}, timeout=seconds)
        for queue in queues:
            queue.cancel()
        _, running = await asyncio.wait({queue.task for queue in queues}, timeout=0.1)
        return len(running)


class _HookQueue:
    """One hook and the events that wait for it."""

    def __init__(self, hook: Hook, resources: Resources, seconds: float) -> None:
        self._hook = hook
        self._call = partial(hook.function, **resources.arguments(hook.needs))
        self._seconds = seconds
        self._events: asyncio.Queue[HookEvent | None] = asyncio.Queue(MAX_WAITING + 1)
        self._dropped = 0
        self._thread: asyncio.Future[object] | None = None
        self.task = asyncio.ensure_future(self._run())

    def put(self, event: HookEvent) -> None:
        if not self._hook.handles(event):
            return
        if self._events.qsize() >= MAX_WAITING:
            self._dropped += 1
            return
        self._events.put_nowait(event)

    def finish(self) -> None:
        self._events.put_nowait(None)

    def cancel(self) -> None:
        if not self.task.done():
            log.warning("hook events dropped", hook=self._hook.label, left=self._undelivered())
            self.task.cancel()

    def _undelivered(self) -> int:
        return self._events.qsize() + self._dropped

    async def _run(self) -> None:
        while (event := await self._events.get()) is not None:
            await self._deliver(event)
            if self._dropped:
                log.warning("hook was too slow", hook=self._hook.label, dropped=self._dropped)
                self._dropped = 0

    async def _deliver(self, event: HookEvent) -> None:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                await (self._call(event) if self._hook.is_async else self._call_in_thread(event))
        except asyncio.CancelledError as error:
            if self.task.cancelling():
                raise
            self._log_failure(event, error)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a hook fails without effect on jobs
            if limit.expired():
                log.warning("hook took too long", hook=self._hook.label, told=event.event.value)
            else:
                self._log_failure(event, error)

    def _log_failure(self, event: HookEvent, error: BaseException) -> None:
        log.error("hook failed", hook=self._hook.label, told=event.event.value, exc_info=error)

    async def _call_in_thread(self, event: HookEvent) -> None:
        """Call a sync hook; one that never returns holds one thread, not one for each event."""
        if self._thread is not None and not self._thread.done():
            await asyncio.wait({self._thread})
        self._thread = run_in_daemon_thread(partial(self._call, event), "hook")
        self._thread.add_done_callback(_consume_error)
        await asyncio.wait({self._thread})
        self._thread.result()


def _consume_error(call: asyncio.Future[object]) -> None:
    """Retrieve an error that comes too late, or asyncio logs it as never retrieved."""
    if not call.cancelled():
        call.exception()


class HookEvents:
    """Builds the events of one worker process and emits them.

    An event is told after the fact: one that cannot be built is logged, and fails no job or slot.
    """

    def __init__(
        self, hooks: Hooks, holder: LeaseHolder, namespace: str, settings: Settings
    ) -> None:
        self._hooks = hooks
        self._worker = holder.worker
        self._namespace = namespace
        self._settings = settings

    def worker_started(self) -> None:
        """Emit that the worker starts to claim jobs."""
        self._emit_worker_event(Event.WORKER_STARTED)

    def worker_stopping(self) -> None:
        """Emit that the worker claims no more jobs."""
        self._emit_worker_event(Event.WORKER_STOPPING)

    def claimed(self, held: HeldJob) -> None:
        """Emit that the job is claimed."""
        self._emit_job_event(held, lambda: JobEvent(Event.CLAIMED, job_info_of(held), self._worker))

    def started(self, held: HeldJob) -> None:
        """Emit that the handler has been started."""
        self._emit_job_event(held, lambda: JobEvent(Event.STARTED, job_info_of(held), self._worker))

    def ended(self, held: HeldJob, stored: PhaseChange, seconds: float) -> None:
        """Emit a stored outcome; the attempt took `seconds` from its claim."""
        self._emit_job_event(held, lambda: job_ended_event(held, stored, self._worker, seconds))

    def _emit_job_event(self, held: HeldJob, build: Callable[[], JobEvent]) -> None:
        if not self._hooks:
            return
        try:
            self._hooks.emit(build())
        except Exception:
            log.exception("hook event lost", job=held.job.name)

    def _emit_worker_event(self, event: Event) -> None:
        queue, slots = self._settings.queue, self._settings.slots()
        self._hooks.emit(WorkerEvent(event, self._worker, self._namespace, queue, slots))


def job_ended_event(held: HeldJob, stored: PhaseChange, worker: str, seconds: float) -> JobEnded:
    """Return the event of a stored outcome."""
    released = stored.reason is Reason.RELEASED
    error = as_object(stored.fields.get("error"))
    return JobEnded(
        event=Event.RELEASED if released else _EVENT_OF[stored.target],
        job=job_info_of(held),
        worker=worker,
        phase=stored.target,
        reason=stored.reason,
        seconds=seconds,
        message=text(stored.fields, "message"),
        error_type=opt_text(error, "type"),
        error_category=opt_text(error, "category"),
        error_message=opt_text(error, "message"),
        retry_in=opt_number(stored.fields, "retryDelaySeconds"),
    )
