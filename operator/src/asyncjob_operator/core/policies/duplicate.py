"""`spec.deduplicationId`: of several live jobs with one id the later ones are cancelled."""

from typing import Final

from asyncjob.lifecycle.gate import drop
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import RivalLives, Transition, Verdict
from asyncjob_operator.core.duplicates import comes_before
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "duplicate"


def duplicate(snapshot: Snapshot, now: Moment) -> Verdict:
    """Cancel a job whose id belongs to another live job."""
    job, holder = snapshot.job, snapshot.rival
    if holder is None or not comes_before(holder, job):
        return None
    message = f"{holder.name} is live and has the same deduplicationId"
    move = drop(job, Reason.DUPLICATE, message, now=now.text)
    return Transition(NAME, move, RivalLives(holder.namespace, holder.name, holder.uid))
