"""`spec.redrive`: a dead letter runs again, unless that gave its deduplication id two holders."""

from typing import Final

from asyncjob.lifecycle.gate import redrive as redriven
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.decision import Refuse, RivalLives, Transition, Verdict
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "redrive"


def redrive(snapshot: Snapshot, now: Moment) -> Verdict:
    """Queue the dead letter anew, or say which job is in its way."""
    job = snapshot.job
    if not is_redrive_wished(job):
        return None
    holder = snapshot.rival
    if holder is None:
        return Transition(NAME, redriven(job, now=now.text))
    if snapshot.refused == job.wishes.redrive:
        return None
    message = f"not redriven: {holder.name} is live and has the same deduplicationId"
    proof = RivalLives(holder.namespace, holder.name, holder.uid)
    return Refuse(NAME, job.wishes.redrive, message, proof)


def is_redrive_wished(job: JobView) -> bool:
    """Return whether somebody wants a dead letter to run again; of any other job it means nothing.

    A wish that was refused stays in the spec when the job is dismissed, and is void then.
    """
    return job.phase is Phase.DEAD_LETTER and job.wishes.redrive > job.redrives
