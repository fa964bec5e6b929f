"""`spec.cancel`: at once for a job that waits, after the grace period for one that runs."""

from typing import Final

from asyncjob.lifecycle.gate import cancel_waiting_job
from asyncjob.lifecycle.outcome import cancel_running_job
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_CANCEL_GRACE_SECONDS
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.policies.cascade import cancel_source
from asyncjob_operator.core.snapshot import Snapshot

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
