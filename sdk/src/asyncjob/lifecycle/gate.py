"""How a job waits and how it becomes claimable: the operator's moves outside Running."""

from dataclasses import replace

from asyncjob.json_types import Json
from asyncjob.lifecycle.move import PhaseChange, change_phase
from asyncjob.lifecycle.outcome import Failure
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.view import JobView

_PROMOTION_REASONS = {
    Phase.PENDING: Reason.GATE_OPENED,
    Phase.SCHEDULED: Reason.START_TIME_REACHED,
    Phase.RETRYING: Reason.BACKOFF_ELAPSED,
}

_FAILURE_CATEGORIES = {
    Reason.QUEUE_TIMEOUT: "Timeout",
    Reason.UNKNOWN_TYPE: "NotFound",
    Reason.DEPENDENCY_FAILED: "Dependency",
}


def promote(job: JobView, *, now: str) -> PhaseChange:
    """Return Pending, Scheduled or Retrying → Queued, admitted where the job has a gate."""
    queued = change_phase(job, Phase.QUEUED, now=now, reason=_PROMOTION_REASONS[job.phase])
    return _with_fields(queued, admitted=True) if job.gated else queued


def schedule(job: JobView, *, now: str) -> PhaseChange:
    """Return Queued → Scheduled, because `notBefore` lies ahead."""
    message = f"starts at {job.gates.not_before}"
    scheduled = change_phase(
        job, Phase.SCHEDULED, now=now, reason=Reason.NOT_BEFORE, message=message
    )
    return _with_fields(scheduled, admitted=None)


def hold(job: JobView, reason: Reason, message: str, *, now: str) -> PhaseChange:
    """Return Queued → Pending, with what the job waits for."""
    held = change_phase(job, Phase.PENDING, now=now, reason=reason, message=message)
    return _with_fields(held, admitted=None)


def dead_letter(job: JobView, reason: Reason, message: str, *, now: str) -> PhaseChange:
    """Return Queued or Pending → DeadLetter."""
    failure = Failure(type=reason.value, category=_FAILURE_CATEGORIES[reason], message=message)
    dead = change_phase(job, Phase.DEAD_LETTER, now=now, reason=reason, message=message)
    return _with_fields(dead, admitted=None, error=failure.to_json())


def cancel_waiting_job(job: JobView, reason: Reason, message: str, *, now: str) -> PhaseChange:
    """Return a waiting job → Cancelled; a dead letter is dismissed by the same."""
    gone = change_phase(job, Phase.CANCELLED, now=now, reason=reason, message=message)
    return _with_fields(gone, admitted=None)


def redrive(job: JobView, *, now: str) -> PhaseChange:
    """Return DeadLetter → Queued with fresh budgets, and the wish acknowledged."""
    message = f"redrive {job.control.redrive}"
    queued = change_phase(job, Phase.QUEUED, now=now, reason=Reason.REDRIVEN, message=message)
    return _with_fields(
        queued, redrives=job.control.redrive, retries=0, crashes=0, releases=0, admitted=None
    )


def _with_fields(change: PhaseChange, **fields: Json) -> PhaseChange:
    return replace(change, fields={**change.fields, **fields})
