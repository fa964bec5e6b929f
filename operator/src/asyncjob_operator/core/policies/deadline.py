"""`spec.notAfter`: a job that has not started by then is cancelled."""

from typing import Final

from asyncjob.lifecycle.gate import cancel_waiting_job
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

DEADLINE: Final = "deadline"


def enforce_deadline(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job that was never claimed and comes too late."""
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
