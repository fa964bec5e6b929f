"""`spec.redrive`: a dead letter runs again, unless that gave its deduplication id two holders."""

from typing import Final

from asyncjob.lifecycle.gate import redrive as redriven
from asyncjob_operator.core.decision import Refuse, RivalLives, Transition, Verdict
from asyncjob_operator.core.duplicates import any_holder
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "redrive"


def redrive(snapshot: Snapshot, now: Moment) -> Verdict:
    """Queue the dead letter anew, or say which job is in its way."""
    job = snapshot.job
    if job.wishes.redrive <= job.redrives:
        return None
    holder = any_holder(snapshot.others)
    if holder is None:
        return Transition(NAME, redriven(job, now=now.text))
    message = f"not redriven: {holder.name} is live and has the same deduplicationId"
    proof = RivalLives(holder.namespace, holder.name, holder.uid)
    return Refuse(NAME, job.wishes.redrive, message, proof)
