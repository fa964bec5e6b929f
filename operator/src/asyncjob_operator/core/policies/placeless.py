"""An admitted job of a queue that counts who runs, and gives places: without one it has to wait.

It was admitted before the queue had such a limit, for a gate of its own. Workers claim whatever is
admitted, so that a backlog of such jobs would run past the limit.
"""

from typing import Final

from asyncjob.lifecycle.gate import hold
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, PolicyResult
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

UNRESERVED: Final = "placeless"


def withdraw_unreserved(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Take the admission back, by way of Pending; the job is queued anew, for a place."""
    job = snapshot.job
    if not job.admitted or snapshot.has_reservation or not snapshot.queue.limits.counts_running:
        return None
    message = f"admitted before queue {job.queue} had its limit"
    return ChangePhase(UNRESERVED, hold(job, Reason.CONCURRENCY_LIMIT, message, now=now.timestamp))
