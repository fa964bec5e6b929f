"""`queueTimeoutSeconds`: a job that waits claimable for too long becomes a dead letter."""

from typing import Final

from asyncjob.lifecycle.gate import give_up
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS
from asyncjob_operator.core.decision import Transition, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.never_started import never_started
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "queue-timeout"


def queue_timeout(snapshot: Snapshot, now: Moment) -> Verdict:
    """Give up a job that no worker has claimed since its creation or redrive."""
    job, since = snapshot.job, snapshot.seen.claimable_since
    if since is None or not never_started(job):
        return None
    limit = _limit(snapshot)
    if now.monotonic < since + limit:
        return Wait(since + limit)
    message = f"no worker claimed it within {limit} s"
    return Transition(NAME, give_up(job, Reason.QUEUE_TIMEOUT, message, now=now.text))


def _limit(snapshot: Snapshot) -> int:
    for seconds in (snapshot.job.queue_timeout_seconds, snapshot.queue.queue_timeout_seconds):
        if seconds is not None:
            return seconds
    return DEFAULT_QUEUE_TIMEOUT_SECONDS
