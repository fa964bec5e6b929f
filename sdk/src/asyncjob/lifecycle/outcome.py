"""How a running job leaves its worker: success, failure, crash, release, cancellation.

Worker and operator compute the same change with the same function; only who may write it differs.
"""

from dataclasses import dataclass, replace

from asyncjob.json_types import Json
from asyncjob.lifecycle.move import Fields, Move, clip, move
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import BUILT_IN, EffectivePolicy
from asyncjob.lifecycle.retry import category_is_retried, delay, requested_delay
from asyncjob.lifecycle.timestamps import later
from asyncjob.lifecycle.view import JobView

FREE_RELEASES = 3
"""Releases that requeue at once; later ones wait for a backoff."""

MAX_RELEASES = 100
"""Releases beyond this count as crashes."""

MAX_ERROR_TYPE = 256
MAX_ERROR_MESSAGE = 4096


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in an attempt.

    `after` is the delay in seconds the handler asked for; `final` forbids another attempt and
    `reason` then says why.
    """

    type: str
    category: str
    message: str
    after: float | None = None
    final: bool = False
    reason: Reason | None = None

    def to_json(self) -> Fields:
        """Return the form of `status.error`."""
        return {
            "type": clip(self.type, MAX_ERROR_TYPE),
            "category": self.category,
            "message": clip(self.message, MAX_ERROR_MESSAGE),
        }


def succeed(job: JobView, *, now: str, result: Json = None, result_ref: Json = None) -> Move:
    """Return Running → Succeeded, with the result or a reference to it."""
    done = move(job, Phase.SUCCEEDED, now=now)
    return _with(done, result=result, resultRef=result_ref, error=None, progress={"percent": 100})


def fail(job: JobView, failure: Failure, *, now: str, draw: float) -> Move:
    """Return Running → Retrying or DeadLetter for a failed attempt; `draw` decides the jitter."""
    policy = _policy(job)
    asked = failure.after is not None
    if failure.final or not (asked or category_is_retried(policy, failure.category)):
        return _dead(job, failure, failure.reason or Reason.NOT_RETRYABLE, failure.message, now)
    if job.retries >= policy.max_retries:
        message = f"failed after {job.retries} of {policy.max_retries} retries: {failure.message}"
        return _dead(job, failure, Reason.RETRIES_EXHAUSTED, message, now)
    wait = delay(policy, job.retries, draw)
    if failure.after is not None:
        wait = requested_delay(failure.after)
    reason = failure.reason or Reason.HANDLER_FAILED
    message = f"retry {job.retries + 1} of {policy.max_retries}: {failure.message}"
    retrying = _retry_later(job, reason, message, wait, now)
    return _with(retrying, retries=job.retries + 1, error=failure.to_json())


def crash(job: JobView, reason: Reason, message: str, *, now: str, draw: float) -> Move:
    """Return Running → Retrying or DeadLetter for an attempt whose worker or process died.

    It spends the crash budget and never a retry.
    """
    policy = _policy(job)
    failure = Failure(type=reason.value, category="Crash", message=message)
    if job.crashes >= policy.max_crashes:
        text = f"crashed {job.crashes + 1} times, {policy.max_crashes} are allowed: {message}"
        dead = _dead(job, failure, Reason.CRASH_BUDGET_EXHAUSTED, text, now)
        return _with(dead, crashes=job.crashes + 1)
    text = f"crash {job.crashes + 1} of {policy.max_crashes} allowed: {message}"
    retrying = _retry_later(job, reason, text, delay(policy, job.crashes, draw), now)
    return _with(retrying, crashes=job.crashes + 1, error=failure.to_json())


def release(job: JobView, reason: Reason, message: str, *, now: str, draw: float) -> Move:
    """Return Running → Queued for an attempt given back; beyond the third it waits first."""
    released = job.releases + 1
    if released > MAX_RELEASES:
        return _with(crash(job, reason, message, now=now, draw=draw), releases=released)
    if released > FREE_RELEASES:
        wait = delay(_policy(job), released - FREE_RELEASES - 1, draw)
        return _with(_retry_later(job, reason, message, wait, now), releases=released)
    queued = move(job, Phase.QUEUED, now=now, reason=reason, message=message)
    return _with(queued, releases=released)


def cancelled(job: JobView, message: str, *, now: str) -> Move:
    """Return Running → Cancelled."""
    return move(job, Phase.CANCELLED, now=now, reason=Reason.CANCEL_REQUESTED, message=message)


def _policy(job: JobView) -> EffectivePolicy:
    return job.effective or BUILT_IN


def _dead(job: JobView, failure: Failure, reason: Reason, message: str, now: str) -> Move:
    dead = move(job, Phase.DEAD_LETTER, now=now, reason=reason, message=message)
    return _with(dead, error=failure.to_json())


def _retry_later(job: JobView, reason: Reason, message: str, wait: float, now: str) -> Move:
    retrying = move(job, Phase.RETRYING, now=now, reason=reason, message=message)
    return _with(retrying, retryDelaySeconds=wait, nextAttemptTime=later(now, wait))


def _with(decided: Move, **fields: Json) -> Move:
    return replace(decided, fields={**decided.fields, **fields})
