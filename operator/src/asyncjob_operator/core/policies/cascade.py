"""`spec.cancelCascade`: a job is cancelled with its parent, or with a job that it waits for.

The job wishes it for itself, and hands it on, so that its own children and dependents follow.
"""

from typing import Final

from asyncjob_operator.core.decision import CancelCascades, CascadeCancel, PolicyResult
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.ties import RelatedJob

CASCADE: Final = "cascade"


def cascade_cancel(snapshot: Snapshot, _now: Now) -> PolicyResult:
    """Set `cancel` and `cancelCascade` on a job that hangs on a cancelled one."""
    job, source = snapshot.job, cancel_source(snapshot)
    if source is None or job.control.cancel:
        return None
    return CascadeCancel(CASCADE, CancelCascades(source))


def cancel_source(snapshot: Snapshot) -> RelatedJob | None:
    """Return the job with which this one is to be cancelled, or None.

    A job that waits for any end of another does not mind how that ends.
    """
    ties, job = snapshot.dependencies, snapshot.job
    if ties.parent and ties.parent.cascades_cancel:
        return ties.parent
    if job.admitted:
        return None
    return next((need.cascading_job for need in ties.states if need.cascading_job), None)
