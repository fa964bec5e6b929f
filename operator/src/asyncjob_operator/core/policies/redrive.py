"""`spec.redrive`: a dead letter runs again, unless that gave its deduplication id two holders."""

from typing import Final

from asyncjob.lifecycle.gate import redrive as redriven
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.decision import (
    ChangePhase,
    DuplicateStillLive,
    PolicyResult,
    RefuseRedrive,
)
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

REDRIVE: Final = "redrive"


def redrive(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue the dead letter anew, or say which job is in its way."""
    job = snapshot.job
    if not is_redrive_requested(job):
        return None
    holder = snapshot.live_duplicate
    if holder is None:
        return ChangePhase(REDRIVE, redriven(job, now=now.timestamp))
    if snapshot.refused_redrive == job.control.redrive:
        return None
    message = f"not redriven: {holder.name} is live and has the same deduplicationId"
    proof = DuplicateStillLive(holder.namespace, holder.name, holder.uid)
    return RefuseRedrive(REDRIVE, job.control.redrive, message, proof)


def is_redrive_requested(job: JobView) -> bool:
    """Return whether somebody wants a dead letter to run again; of any other job it means nothing.

    A wish that was refused stays in the spec when the job is dismissed, and is void then.
    """
    return job.phase is Phase.DEAD_LETTER and job.control.redrive > job.redrives
