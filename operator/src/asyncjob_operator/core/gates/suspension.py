"""Closed while `spec.suspend` is true."""

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.gates.closed import Closed
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot


def suspension(snapshot: Snapshot, _now: Moment) -> Closed | None:
    """Return closed while the user holds the job back."""
    if not snapshot.job.wishes.suspend:
        return None
    return Closed(Reason.SUSPENDED, "suspended by spec.suspend")
