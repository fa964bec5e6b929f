"""Policies that cancel a job: `cancel`, `cancelCascade`, `notAfter`, `deadlineSeconds`, deletion.

A waiting job is cancelled at once, a running one after its grace period. A cascade is written into
the job's own spec, so that its children and dependents follow. A deadline is a time of the API
server's clock, as the creation is that it counts from; its worker knows it as well.

A job that is being deleted would otherwise hold its worker, its reservation and its cron job's turn
for as long as a finalizer keeps it. No rule lets a job be cancelled without a request, so the
operator sets `spec.cancel` itself.
"""

from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import (
    cancel_running_job,
    cancel_waiting_job,
    deadline_message,
)
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_CANCEL_GRACE_SECONDS
from asyncjob.lifecycle.timestamps import add_seconds
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
    return dependencies.cascading_job


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
    """Cancel a job that no worker holds and that has not finished by its deadline."""
    job = snapshot.job
    if job.deadline_seconds is None or (deadline := job.deadline) is None:  # most have none
        return None
    if now.server_seconds_until(deadline) > 0:
        return Wait(now.recheck_at_server_time(deadline))
    return ChangePhase(
        DEADLINE,
        cancel_waiting_job(job, Reason.DEADLINE_EXCEEDED, deadline_message(job), now=now.timestamp),
    )


def end_past_deadline(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a running job whose worker did not do so within the grace period after its deadline.

    As for an execution timeout, the worker has a margin to do it first.
    """
    job = snapshot.job
    if job.deadline_seconds is None or (deadline := job.deadline) is None:  # most have none
        return None
    grace = _cancel_grace(snapshot)
    ends_at = add_seconds(deadline, grace + snapshot.options.timeout_margin)
    if now.server_seconds_until(ends_at) > 0:
        return Wait(now.recheck_at_server_time(ends_at))
    message = f"{deadline_message(job)}; the handler did not stop within {grace} s"
    change = cancel_running_job(job, message, now=now.timestamp, reason=Reason.DEADLINE_EXCEEDED)
    return ChangePhase(DEADLINE, change)


def is_past_deadline(job: JobView, now: Now) -> bool:
    """Return whether an unfinished job is to be cancelled, and a dead letter stays one."""
    return job.deadline is not None and now.server_seconds_until(job.deadline) <= 0


START_DEADLINE: Final = "start-deadline"


def enforce_start_deadline(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job that was never claimed before its `notAfter`."""
    job = snapshot.job
    not_after = job.gates.not_after
    if not_after is None or job.attempt > 0:
        return None
    if now.seconds_until(not_after) > 0:
        return Wait(now.recheck_at(not_after))
    message = f"notAfter {not_after} passed before the first start"
    return ChangePhase(
        START_DEADLINE,
        cancel_waiting_job(job, Reason.DEADLINE_EXCEEDED, message, now=now.timestamp),
    )


DELETION: Final = "deletion"


def cancel_deleted(snapshot: Snapshot, _now: Now) -> PolicyResult:
    """Set `cancel` on an unfinished job that is being deleted."""
    return None if snapshot.job.control.cancel else CancelDeleted(DELETION)
