"""A queued job that needs it is admitted where it stands, once nothing holds it back.

It needs it if it has gates of its own, or if its queue has limits: then it has to have a place. One
that no worker there would claim does not line up for one, or it would keep it from the others.
Not beside a live job with the same deduplication id, even if the id is this one's: the other is
cancelled first, by a write that fails if it was admitted meanwhile. So never two are let through.
"""

from typing import Final

from asyncjob_operator.core.decision import AWAIT_RESERVATION, Admit, PolicyResult
from asyncjob_operator.core.gates import first_closed_gate
from asyncjob_operator.core.gates.dependencies import children_precondition
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

ADMIT: Final = "admit"


def admit(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Set `admitted`, without which a gated job, or one in a limited queue, is not claimed."""
    job, limited = snapshot.job, snapshot.queue.has_limits
    if job.admitted or not (job.gated or limited):
        return None
    if first_closed_gate(snapshot, now) or snapshot.live_duplicate:
        return None
    if limited and not snapshot.has_reservation:
        return AWAIT_RESERVATION if snapshot.type_known else None
    return Admit(ADMIT, children_precondition(snapshot))
