"""How a running job leaves its worker: success, failure, crash, release, cancellation.

Worker and operator compute the same change with the same function; only who may write it differs.
"""

from dataclasses import dataclass, replace

from asyncjob.json_types import Json
from asyncjob.lifecycle.move import PhaseChange, StatusFields, change_phase, truncate
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, EffectivePolicy
from asyncjob.lifecycle.retry import is_retryable_category, requested_delay, retry_delay
from asyncjob.lifecycle.timestamps import add_seconds
from asyncjob.lifecycle.view import JobView

MAX_IMMEDIATE_RELEASES = 3
"""Releases that requeue at once; later ones wait for a backoff."""

MAX_RELEASES = 100
"""Releases beyond this count as crashes."""

MAX_ERROR_TYPE_LENGTH = 256
MAX_ERROR_MESSAGE_LENGTH = 4096


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in an attempt.

    `retry_after` is the delay in seconds the handler asked for; `final` forbids another attempt and
    `reason` then says why.
    """

    type: str
    category: str
    message: str
    retry_after: float | None = None
    final: bool = False
    reason: Reason | None = None

    def to_json(self) -> StatusFields:
        """Return the form of `status.error`."""
        return {
            "type": truncate(self.type, MAX_ERROR_TYPE_LENGTH),
            "category": self.category,
            "message": truncate(self.message, MAX_ERROR_MESSAGE_LENGTH),
        }


def succeed(job: JobView, *, now: str, result: Json = None, result_ref: Json = None) -> PhaseChange:
    """Return Running → Succeeded, with the result or a reference to it."""
    done = change_phase(job, Phase.SUCCEEDED, now=now)
    return _with_fields(
        done, result=result, resultRef=result_ref, error=None, progress={"percent": 100}
    )


def fail(job: JobView, failure: Failure, *, now: str, draw: float) -> PhaseChange:
    """Return Running → Retrying or DeadLetter for a failed attempt; `draw` decides the jitter."""
    policy = _effective_policy(job)
    asked = failure.retry_after is not None
    if failure.final or not (asked or is_retryable_category(policy, failure.category)):
        return _to_dead_letter(
            job, failure, failure.reason or Reason.NOT_RETRYABLE, failure.message, now
        )
    if job.retries >= policy.max_retries:
        message = f"failed after {job.retries} of {policy.max_retries} retries: {failure.message}"
        return _to_dead_letter(job, failure, Reason.RETRIES_EXHAUSTED, message, now)
    wait = retry_delay(policy, job.retries, draw)
    if failure.retry_after is not None:
        wait = requested_delay(failure.retry_after)
    reason = failure.reason or Reason.HANDLER_FAILED
    message = f"retry {job.retries + 1} of {policy.max_retries}: {failure.message}"
    retrying = _to_retrying(job, reason, message, wait, now)
    return _with_fields(retrying, retries=job.retries + 1, error=failure.to_json())


def crash(job: JobView, reason: Reason, message: str, *, now: str, draw: float) -> PhaseChange:
    """Return Running → Retrying or DeadLetter for an attempt whose worker or process died.

    It spends the crash budget and never a retry.
    """
    policy = _effective_policy(job)
    failure = Failure(type=reason.value, category="Crash", message=message)
    if job.crashes >= policy.max_crashes:
        text = f"crashed {job.crashes + 1} times, {policy.max_crashes} are allowed: {message}"
        dead = _to_dead_letter(job, failure, Reason.CRASH_BUDGET_EXHAUSTED, text, now)
        return _with_fields(dead, crashes=job.crashes + 1)
    text = f"crash {job.crashes + 1} of {policy.max_crashes} allowed: {message}"
    retrying = _to_retrying(job, reason, text, retry_delay(policy, job.crashes, draw), now)
    return _with_fields(retrying, crashes=job.crashes + 1, error=failure.to_json())


def release(job: JobView, reason: Reason, message: str, *, now: str, draw: float) -> PhaseChange:
    """Return Running → Queued for an attempt given back; beyond the third it waits first."""
    released = job.releases + 1
    if released > MAX_RELEASES:
        return _with_fields(crash(job, reason, message, now=now, draw=draw), releases=released)
    if released > MAX_IMMEDIATE_RELEASES:
        wait = retry_delay(_effective_policy(job), released - MAX_IMMEDIATE_RELEASES - 1, draw)
        return _with_fields(_to_retrying(job, reason, message, wait, now), releases=released)
    queued = change_phase(job, Phase.QUEUED, now=now, reason=reason, message=message)
    return _with_fields(queued, releases=released)


def cancel_running_job(job: JobView, message: str, *, now: str) -> PhaseChange:
    """Return Running → Cancelled."""
    return change_phase(
        job, Phase.CANCELLED, now=now, reason=Reason.CANCEL_REQUESTED, message=message
    )


def _effective_policy(job: JobView) -> EffectivePolicy:
    return job.effective or BUILT_IN_POLICY


def _to_dead_letter(
    job: JobView, failure: Failure, reason: Reason, message: str, now: str
) -> PhaseChange:
    dead = change_phase(job, Phase.DEAD_LETTER, now=now, reason=reason, message=message)
    return _with_fields(dead, error=failure.to_json())


def _to_retrying(job: JobView, reason: Reason, message: str, wait: float, now: str) -> PhaseChange:
    retrying = change_phase(job, Phase.RETRYING, now=now, reason=reason, message=message)
    return _with_fields(retrying, retryDelaySeconds=wait, nextAttemptTime=add_seconds(now, wait))


def _with_fields(change: PhaseChange, **fields: Json) -> PhaseChange:
    return replace(change, fields={**change.fields, **fields})
