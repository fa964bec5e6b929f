"""`spec.notAfter`: a job that has not started by then is cancelled."""

from typing import Final

from asyncjob.lifecycle.gate import drop
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import Transition, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "deadline"


def deadline(snapshot: Snapshot, now: Moment) -> Verdict:
    """Cancel a job that was never claimed and comes too late."""
    job = snapshot.job
    not_after = job.gates.not_after
    if not_after is None or job.attempt > 0:
        return None
    if now.until(not_after) > 0:
        return Wait(now.look_at(not_after))
    message = f"notAfter {not_after} passed before the first start"
    return Transition(NAME, drop(job, Reason.DEADLINE_EXCEEDED, message, now=now.text))
