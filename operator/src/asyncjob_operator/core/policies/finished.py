"""Policies for what people request of a finished job: dismissal, redrive and rerun.

`spec.cancel` dismisses a dead letter, `spec.redrive` runs it again unless another live job has the
same deduplication id, and `spec.rerun` creates a new, linked job that does the same. The derived
name of a rerun makes it happen once.
"""

from typing import Final

from asyncjob.lifecycle.derived_jobs import rerun_name
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import cancel_waiting_job
from asyncjob.lifecycle.phase_change import redrive as redriven
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_operator.core.decision import (
    ChangePhase,
    CreateRerun,
    DuplicateStillLive,
    PolicyResult,
    RedriveRefusal,
    RefuseRedrive,
    Wait,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.cancellation import is_past_deadline
from asyncjob_operator.core.policies.deduplication import sole_live_precondition
from asyncjob_operator.core.snapshot import Snapshot

DISMISS: Final = "dismiss"


def dismiss(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Dismiss the dead letter."""
    job = snapshot.job
    if not job.control.cancel:
        return None
    message = f"dismissed; was a dead letter: {job.reason}"
    return ChangePhase(
        DISMISS, cancel_waiting_job(job, Reason.DISMISSED, message, now=now.timestamp)
    )


REDRIVE: Final = "redrive"


def redrive(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue the dead letter again, unless it is too late or a live job has its deduplication id."""
    job = snapshot.job
    if not is_redrive_requested(job):
        return None
    if is_past_deadline(job, now):
        message = f"not redriven: the deadline of the job passed at {job.deadline}"
        return _refuse_once(snapshot, RedriveRefusal.PAST_DEADLINE, message)
    holder = snapshot.live_duplicate
    if holder is None:
        change = redriven(job, now=now.timestamp)
        return ChangePhase(REDRIVE, change, sole_live_precondition(job))
    message = f"not redriven: {holder.name} is live and has the same deduplicationId"
    precondition = DuplicateStillLive(holder.namespace, holder.name, holder.uid)
    return _refuse_once(snapshot, RedriveRefusal.DUPLICATE, message, precondition)


def _refuse_once(
    snapshot: Snapshot,
    why: RedriveRefusal,
    message: str,
    precondition: DuplicateStillLive | None = None,
) -> PolicyResult:
    """Return a refusal that has not been told yet: each reason is told once for a request."""
    number = snapshot.job.control.redrive
    if snapshot.refused_redrive == (number, why):
        return None
    return RefuseRedrive(REDRIVE, number, why, message, precondition)


def is_redrive_requested(job: JobView) -> bool:
    """Return whether a redrive of the dead letter is requested; any other job has none.

    A request that was refused stays in the spec when the job is dismissed, and is void then.
    """
    return job.phase is Phase.DEAD_LETTER and job.control.redrive > job.redrives


RERUN: Final = "rerun"


def rerun(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Create the requested rerun: one, however far the number was raised.

    The policy is last in each chain, so that a rerun that cannot be created delays nothing else.
    """
    job = snapshot.job
    number = job.control.rerun
    if number <= job.reruns:
        return None
    if now.monotonic < snapshot.rerun_retry_at:
        return Wait(snapshot.rerun_retry_at)
    return CreateRerun(RERUN, number, rerun_name(job.name, number))
