"""Closed while `spec.suspend` is true."""

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.gates.closed import ClosedGate
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot


def suspend_gate(snapshot: Snapshot, _now: Now) -> ClosedGate | None:
    """Return closed while the user holds the job back."""
    if not snapshot.job.control.suspend:
        return None
    return ClosedGate(Reason.SUSPENDED, "suspended by spec.suspend")
