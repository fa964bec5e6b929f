"""What hooks are told of held jobs and stored outcomes; made only where somebody listens."""

from asyncjob.app.events import Event, JobEnded, JobEvent, WorkerEvent
from asyncjob.json_types import as_object, opt_number, opt_text, text
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.lifecycle.move import PhaseChange
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_worker.attempt import job_info_of
from asyncjob_worker.held import HeldJob
from asyncjob_worker.hooks import Hooks
from asyncjob_worker.settings import Settings

_EVENT_OF = {
    Phase.SUCCEEDED: Event.SUCCEEDED,
    Phase.RETRYING: Event.RETRIED,
    Phase.DEAD_LETTER: Event.DEAD_LETTERED,
    Phase.CANCELLED: Event.CANCELLED,
    Phase.QUEUED: Event.RELEASED,
}


class HookEvents:
    """Tells hooks in the name of one worker process."""

    def __init__(
        self, hooks: Hooks, holder: LeaseHolder, namespace: str, settings: Settings
    ) -> None:
        self._hooks = hooks
        self._worker = holder.worker
        self._namespace = namespace
        self._settings = settings

    @classmethod
    def disabled(cls) -> "HookEvents":
        """Return one that nobody listens to."""
        return cls(Hooks(()), LeaseHolder("", "", ""), "", Settings())

    def worker_started(self) -> None:
        """Tell that claiming begins."""
        self._emit_worker_event(Event.WORKER_STARTED)

    def worker_stopping(self) -> None:
        """Tell that no more is claimed."""
        self._emit_worker_event(Event.WORKER_STOPPING)

    def claimed(self, held: HeldJob) -> None:
        """Tell that the job is ours."""
        if self._hooks:
            self._hooks.emit(JobEvent(Event.CLAIMED, job_info_of(held), self._worker))

    def started(self, held: HeldJob) -> None:
        """Tell that the handler begins."""
        if self._hooks:
            self._hooks.emit(JobEvent(Event.STARTED, job_info_of(held), self._worker))

    def ended(self, held: HeldJob, stored: PhaseChange, seconds: float) -> None:
        """Tell of an outcome that is stored; the handler took so many seconds."""
        if self._hooks:
            self._hooks.emit(job_ended_event(held, stored, self._worker, seconds))

    def _emit_worker_event(self, event: Event) -> None:
        queue, slots = self._settings.queue, self._settings.slots()
        self._hooks.emit(WorkerEvent(event, self._worker, self._namespace, queue, slots))


def job_ended_event(held: HeldJob, stored: PhaseChange, worker: str, seconds: float) -> JobEnded:
    """Return what hooks are told of an outcome."""
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
