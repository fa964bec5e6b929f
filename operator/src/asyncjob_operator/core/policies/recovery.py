"""Policies for running jobs that their worker does not finish: recovery and execution timeout.

A job is taken from a lost worker at once if the loss is proven, otherwise when the lease has
expired. `executionTimeoutSeconds` is enforced here where the worker did not end the attempt
itself.
"""

from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import (
    Failure,
    PhaseChange,
    cancel_running_job,
    crash,
    deadline_message,
    fail,
    release,
)
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, Category
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.liveness import HolderLoss, loss_on_expiry, proven_loss
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.cancellation import is_past_deadline
from asyncjob_operator.core.snapshot import Snapshot

RECOVER: Final = "recover"


def recover(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Take the job from a lost worker: as a crash, a release, or a cancellation.

    The latter if that is requested or the job's deadline has passed.
    """
    job, lease = snapshot.job, snapshot.job.lease
    if lease is None or not snapshot.options.recovery:
        return None
    verdict = proven_loss(job, lease, snapshot.holder, snapshot.observation.entered_at, now)
    if not isinstance(verdict, HolderLoss):
        expires_at = (
            snapshot.observation.renewed_at + lease.duration_seconds + snapshot.options.lease_margin
        )
        if now.monotonic < expires_at:
            return Wait(min(expires_at, verdict.until) if verdict else expires_at)
        verdict = loss_on_expiry(job, lease, snapshot.holder)
    return ChangePhase(RECOVER, _loss_outcome(job, verdict, now), verdict.precondition)


def _loss_outcome(job: JobView, loss: HolderLoss, now: Now) -> PhaseChange:
    if job.control.cancel:
        return cancel_running_job(
            job, f"cancelled by spec.cancel; {loss.message}", now=now.timestamp
        )
    if is_past_deadline(job, now):
        message = f"{deadline_message(job)}; {loss.message}"
        return cancel_running_job(job, message, now=now.timestamp, reason=Reason.DEADLINE_EXCEEDED)
    take_away = crash if loss.is_crash else release
    return take_away(job, loss.reason, loss.message, now=now.timestamp, jitter_sample=now.jitter)


EXECUTION_TIMEOUT: Final = "execution-timeout"


def enforce_execution_timeout(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Fail an attempt that runs too long, counted from when this replica first saw its claim."""
    job = snapshot.job
    limit = (job.effective or BUILT_IN_POLICY).execution_timeout_seconds
    ends_at = snapshot.observation.entered_at + limit + snapshot.options.timeout_margin
    if now.monotonic < ends_at:
        return Wait(ends_at)
    failure = Failure(
        type=Reason.EXECUTION_TIMEOUT.value,
        category=Category.TIMEOUT,
        message=f"the attempt ran longer than {limit} s and its worker did not end it",
        reason=Reason.EXECUTION_TIMEOUT,
    )
    return ChangePhase(
        EXECUTION_TIMEOUT, fail(job, failure, now=now.timestamp, jitter_sample=now.jitter)
    )
