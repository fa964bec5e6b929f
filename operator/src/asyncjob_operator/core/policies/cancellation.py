"""Policies that cancel a job: `cancel`, `cancelCascade`, `notAfter`, and deletion.

A waiting job is cancelled at once, a running one after its grace period. A cascade is written into
the job's own spec, so that its children and dependents follow.

A job that is being deleted would otherwise hold its worker, its reservation and its cron job's turn
for as long as a finalizer keeps it. No rule lets a job be cancelled without a request, so the
operator sets `spec.cancel` itself.
"""

from typing import Final

from asyncjob.lifecycle.phase_change import cancel_running_job, cancel_waiting_job
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_CANCEL_GRACE_SECONDS
from asyncjob_operator.core.decision import (
    CancelCascades,
    CancelDeleted,
    CascadeCancel,
    ChangePhase,
    PolicyResult,
    Wait,
)
from asyncjob_operator.core.dependencies import RelatedJob
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.snapshot import Snapshot

CASCADE: Final = "cascade"


def cascade_cancel(snapshot: Snapshot, _now: Now) -> PolicyResult:
    """Set `cancel` and `cancelCascade` on a child or dependent of a cancelled job."""
    job, source = snapshot.job, cancel_source(snapshot)
    if source is None or job.control.cancel:
        return None
    return CascadeCancel(CASCADE, CancelCascades(source))


def cancel_source(snapshot: Snapshot) -> RelatedJob | None:
    """Return the job with which this one is to be cancelled, or None.

    A dependency that accepts any outcome does not cascade.
    """
    dependencies, job = snapshot.dependencies, snapshot.job
    if dependencies.parent and dependencies.parent.cascades_cancel:
        return dependencies.parent
    if job.admitted:
        return None
    return next((state.cascading_job for state in dependencies.states if state.cascading_job), None)


CANCEL: Final = "cancel"


def cancel_waiting(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job that no worker holds."""
    job = snapshot.job
    if not job.control.cancel:
        return None
    source = cancel_source(snapshot)
    message = "cancelled by spec.cancel" + (f", with {source.name}" if source else "")
    return ChangePhase(
        CANCEL, cancel_waiting_job(job, Reason.CANCEL_REQUESTED, message, now=now.timestamp)
    )


def cancel_running(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a running job whose worker did not do so within the grace period."""
    job, seen_at = snapshot.job, snapshot.observation.cancel_requested_at
    if seen_at is None:
        return None
    grace = _cancel_grace(snapshot)
    if now.monotonic < seen_at + grace:
        return Wait(seen_at + grace)
    message = f"cancelled by spec.cancel; the handler did not stop within {grace} s"
    return ChangePhase(CANCEL, cancel_running_job(job, message, now=now.timestamp))


def _cancel_grace(snapshot: Snapshot) -> int:
    for seconds in (snapshot.job.cancel_grace_seconds, snapshot.queue.cancel_grace_seconds):
        if seconds is not None:
            return seconds
    return DEFAULT_CANCEL_GRACE_SECONDS


DEADLINE: Final = "deadline"


def enforce_deadline(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job that was never claimed before its `notAfter`."""
    job = snapshot.job
    not_after = job.gates.not_after
    if not_after is None or job.attempt > 0:
        return None
    if now.seconds_until(not_after) > 0:
        return Wait(now.recheck_at(not_after))
    message = f"notAfter {not_after} passed before the first start"
    return ChangePhase(
        DEADLINE, cancel_waiting_job(job, Reason.DEADLINE_EXCEEDED, message, now=now.timestamp)
    )


DELETION: Final = "deletion"


def cancel_deleted(snapshot: Snapshot, _now: Now) -> PolicyResult:
    """Set `cancel` on an unfinished job that is being deleted."""
    return None if snapshot.job.control.cancel else CancelDeleted(DELETION)
