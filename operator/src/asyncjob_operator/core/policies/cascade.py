"""`spec.cancelCascade`: a job is cancelled with its parent, or with a job that it waits for.

The job wishes it for itself, and hands it on, so that its own children and dependents follow.
"""

from typing import Final

from asyncjob_operator.core.decision import Cascade, Cascading, Verdict
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.ties import Relative

NAME: Final = "cascade"


def cascade(snapshot: Snapshot, _now: Moment) -> Verdict:
    """Set `cancel` and `cancelCascade` on a job that hangs on a cancelled one."""
    job, source = snapshot.job, cascading(snapshot)
    if source is None or job.wishes.cancel:
        return None
    return Cascade(NAME, Cascading(source))


def cascading(snapshot: Snapshot) -> Relative | None:
    """Return the job with which this one is to be cancelled, or None.

    A job that waits for any end of another does not mind how that ends.
    """
    ties, job = snapshot.ties, snapshot.job
    if ties.parent and ties.parent.cascades:
        return ties.parent
    if job.admitted:
        return None
    return next((need.cascading for need in ties.needs if need.cascading), None)
