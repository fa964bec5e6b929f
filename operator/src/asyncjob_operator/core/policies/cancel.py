"""`spec.cancel`: at once for a job that waits, after the grace period for one that runs."""

from typing import Final

from asyncjob.lifecycle.gate import drop
from asyncjob.lifecycle.outcome import cancelled
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_CANCEL_GRACE_SECONDS
from asyncjob_operator.core.decision import Transition, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.policies.cascade import cascading
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "cancel"


def cancel_waiting(snapshot: Snapshot, now: Moment) -> Verdict:
    """Cancel a job that no worker holds."""
    job = snapshot.job
    if not job.wishes.cancel:
        return None
    source = cascading(snapshot)
    message = "cancelled by spec.cancel" + (f", with {source.name}" if source else "")
    return Transition(NAME, drop(job, Reason.CANCEL_REQUESTED, message, now=now.text))


def cancel_running(snapshot: Snapshot, now: Moment) -> Verdict:
    """Cancel a running job whose worker did not do so within the grace period."""
    job, seen_at = snapshot.job, snapshot.seen.cancel_at
    if seen_at is None:
        return None
    grace = _grace(snapshot)
    if now.monotonic < seen_at + grace:
        return Wait(seen_at + grace)
    message = f"cancelled by spec.cancel; the handler did not stop within {grace} s"
    return Transition(NAME, cancelled(job, message, now=now.text))


def _grace(snapshot: Snapshot) -> int:
    for seconds in (snapshot.job.cancel_grace_seconds, snapshot.queue.cancel_grace_seconds):
        if seconds is not None:
            return seconds
    return DEFAULT_CANCEL_GRACE_SECONDS
