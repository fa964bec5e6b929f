"""Closed while `spec.dependsOn` is unmet. Dependencies are not judged yet: it never opens."""

from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.gates.closed import Closed
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot


def dependencies(snapshot: Snapshot, _now: Moment) -> Closed | None:
    """Return closed for a job that depends on others."""
    if not snapshot.job.gates.has_dependencies:
        return None
    return Closed(Reason.WAITING_FOR_DEPENDENCY, "waits for the jobs in spec.dependsOn")
