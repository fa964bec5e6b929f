"""`spec.deduplicationId`: of several live jobs with one id the later ones are cancelled."""

from typing import Final

from asyncjob.lifecycle.gate import cancel_waiting_job
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, DuplicateStillLive, PolicyResult
from asyncjob_operator.core.duplicates import takes_precedence
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

DUPLICATE: Final = "duplicate"


def cancel_duplicate(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job whose id belongs to another live job."""
    job, holder = snapshot.job, snapshot.live_duplicate
    if holder is None or not takes_precedence(holder, job):
        return None
    message = f"{holder.name} is live and has the same deduplicationId"
    move = cancel_waiting_job(job, Reason.DUPLICATE, message, now=now.timestamp)
    return ChangePhase(
        DUPLICATE, move, DuplicateStillLive(holder.namespace, holder.name, holder.uid)
    )
