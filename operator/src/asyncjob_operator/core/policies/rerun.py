"""`spec.rerun`: a new, linked job that does the same; its derived name makes it happen once."""

from typing import Final

from asyncjob.lifecycle.derived_names import rerun_name
from asyncjob_operator.core.decision import Rerun, Verdict
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "rerun"


def rerun(snapshot: Snapshot, _now: Moment) -> Verdict:
    """Create the rerun that was asked for, however far the number was raised."""
    job = snapshot.job
    number = job.wishes.rerun
    if number <= job.reruns:
        return None
    return Rerun(NAME, number, rerun_name(job.name, number))
