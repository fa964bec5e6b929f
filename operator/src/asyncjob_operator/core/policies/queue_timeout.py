"""`queueTimeoutSeconds`: a job that waits claimable for too long becomes a dead letter."""

from typing import Final

from asyncjob.lifecycle.gate import dead_letter
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.never_started import never_started
from asyncjob_operator.core.snapshot import Snapshot

QUEUE_TIMEOUT: Final = "queue-timeout"


def enforce_queue_timeout(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Give up a job that no worker has claimed since its creation or redrive."""
    job, since = snapshot.job, snapshot.observation.claimable_since
    if since is None or not never_started(job):
        return None
    limit = _queue_timeout_seconds(snapshot)
    if now.monotonic < since + limit:
        return Wait(since + limit)
    message = f"no worker claimed it within {limit} s"
    return ChangePhase(
        QUEUE_TIMEOUT, dead_letter(job, Reason.QUEUE_TIMEOUT, message, now=now.timestamp)
    )


def _queue_timeout_seconds(snapshot: Snapshot) -> int:
    for seconds in (snapshot.job.queue_timeout_seconds, snapshot.queue.queue_timeout_seconds):
        if seconds is not None:
            return seconds
    return DEFAULT_QUEUE_TIMEOUT_SECONDS
