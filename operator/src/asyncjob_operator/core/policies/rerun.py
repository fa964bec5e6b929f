"""`spec.rerun`: a new, linked job that does the same; its derived name makes it happen once."""

from typing import Final

from asyncjob.lifecycle.derived_names import rerun_name
from asyncjob_operator.core.decision import CreateRerun, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

RERUN: Final = "rerun"


def rerun(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Create the rerun that was asked for, however far the number was raised.

    It comes last in each chain, and what keeps it from being created holds nothing else up.
    """
    job = snapshot.job
    number = job.control.rerun
    if number <= job.reruns:
        return None
    if now.monotonic < snapshot.rerun_retry_at:
        return Wait(snapshot.rerun_retry_at)
    return CreateRerun(RERUN, number, rerun_name(job.name, number))
