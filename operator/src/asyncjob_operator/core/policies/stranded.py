"""An admitted job that no worker of its queue would claim any more, and that holds a place there.

The workers that knew its type have gone, and others are left. Never claimed, it would keep its
place from their jobs for as long as it waits.
"""

from typing import Final

from asyncjob.lifecycle.gate import hold
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

STRANDED: Final = "stranded"


def withdraw_unserved(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Take the admission back, by way of Pending; the job has no place until a worker is there."""
    job, since = snapshot.job, snapshot.observation.unknown_type_since
    if since is None or not job.admitted:
        return None
    due_at = since + snapshot.options.unknown_type_delay
    if now.monotonic < due_at:
        return Wait(due_at)
    message = f"no worker of queue {job.queue} lists type {job.type} any more: its place is free"
    counts = snapshot.queue.limits.counts_running
    reason = Reason.CONCURRENCY_LIMIT if counts else Reason.RATE_LIMIT
    return ChangePhase(STRANDED, hold(job, reason, message, now=now.timestamp))
