"""Closed until `spec.notBefore`, by the operator's clock; a worker's decides nothing."""

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.gates.closed import Closed
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot


def start_time(snapshot: Snapshot, now: Moment) -> Closed | None:
    """Return closed while `notBefore` lies ahead."""
    not_before = snapshot.job.gates.not_before
    if not_before is None or now.until(not_before) <= 0:
        return None
    return Closed(Reason.NOT_BEFORE, f"starts at {not_before}", now.look_at(not_before))
