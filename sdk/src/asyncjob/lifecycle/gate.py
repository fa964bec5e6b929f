"""How a job waits and how it becomes claimable: the operator's moves outside Running."""

from dataclasses import replace

from asyncjob.json_types import Json
from asyncjob.lifecycle.move import Move, move
from asyncjob.lifecycle.outcome import Failure
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.view import JobView

_PROMOTION = {
    Phase.PENDING: Reason.GATE_OPENED,
    Phase.SCHEDULED: Reason.START_TIME_REACHED,
    Phase.RETRYING: Reason.BACKOFF_ELAPSED,
}

_CATEGORY = {
    Reason.QUEUE_TIMEOUT: "Timeout",
    Reason.UNKNOWN_TYPE: "NotFound",
    Reason.DEPENDENCY_FAILED: "Dependency",
}


def promote(job: JobView, *, now: str) -> Move:
    """Return Pending, Scheduled or Retrying → Queued, admitted where the job has a gate."""
    queued = move(job, Phase.QUEUED, now=now, reason=_PROMOTION[job.phase])
    return _with(queued, admitted=True) if job.gated else queued


def schedule(job: JobView, *, now: str) -> Move:
    """Return Queued → Scheduled, because `notBefore` lies ahead."""
    message = f"starts at {job.gates.not_before}"
    scheduled = move(job, Phase.SCHEDULED, now=now, reason=Reason.NOT_BEFORE, message=message)
    return _with(scheduled, admitted=None)


def hold(job: JobView, reason: Reason, message: str, *, now: str) -> Move:
    """Return Queued → Pending, with what the job waits for."""
    held = move(job, Phase.PENDING, now=now, reason=reason, message=message)
    return _with(held, admitted=None)


def give_up(job: JobView, reason: Reason, message: str, *, now: str) -> Move:
    """Return Queued or Pending → DeadLetter."""
    failure = Failure(type=reason.value, category=_CATEGORY[reason], message=message)
    dead = move(job, Phase.DEAD_LETTER, now=now, reason=reason, message=message)
    return _with(dead, admitted=None, error=failure.to_json())


def drop(job: JobView, reason: Reason, message: str, *, now: str) -> Move:
    """Return a waiting job → Cancelled; a dead letter is dismissed by the same."""
    gone = move(job, Phase.CANCELLED, now=now, reason=reason, message=message)
    return _with(gone, admitted=None)


def redrive(job: JobView, *, now: str) -> Move:
    """Return DeadLetter → Queued with fresh budgets, and the wish acknowledged."""
    message = f"redrive {job.wishes.redrive}"
    queued = move(job, Phase.QUEUED, now=now, reason=Reason.REDRIVEN, message=message)
    return _with(
        queued, redrives=job.wishes.redrive, retries=0, crashes=0, releases=0, admitted=None
    )


def _with(decided: Move, **fields: Json) -> Move:
    return replace(decided, fields={**decided.fields, **fields})
