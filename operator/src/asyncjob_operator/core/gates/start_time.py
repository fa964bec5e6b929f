"""Closed until `spec.notBefore`, by the operator's clock; a worker's decides nothing."""

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.gates.closed import ClosedGate
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot


def not_before_gate(snapshot: Snapshot, now: Now) -> ClosedGate | None:
    """Return closed while `notBefore` lies ahead."""
    not_before = snapshot.job.gates.not_before
    if not_before is None or now.seconds_until(not_before) <= 0:
        return None
    return ClosedGate(Reason.NOT_BEFORE, f"starts at {not_before}", now.recheck_at(not_before))
