"""`spec.rerun`: a new, linked job that does the same; its derived name makes it happen once."""

from typing import Final

from asyncjob.lifecycle.derived_names import rerun_name
from asyncjob_operator.core.decision import Rerun, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "rerun"


def rerun(snapshot: Snapshot, now: Moment) -> Verdict:
    """Create the rerun that was asked for, however far the number was raised.

    It comes last in each chain, and what keeps it from being created holds nothing else up.
    """
    job = snapshot.job
    number = job.wishes.rerun
    if number <= job.reruns:
        return None
    if now.monotonic < snapshot.rerun_after:
        return Wait(snapshot.rerun_after)
    return Rerun(NAME, number, rerun_name(job.name, number))
