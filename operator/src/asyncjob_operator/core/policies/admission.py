"""A queued job with gates, all of them open, is admitted where it stands.

Not beside a live job with the same deduplication id, even if the id is this one's: the other is
cancelled first, by a write that fails if it was admitted meanwhile. So never two are let through.
"""

from typing import Final

from asyncjob_operator.core.decision import Admit, Verdict
from asyncjob_operator.core.duplicates import any_holder
from asyncjob_operator.core.gates import first_closed
from asyncjob_operator.core.gates.dependencies import childless
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "admit"


def admit(snapshot: Snapshot, now: Moment) -> Verdict:
    """Set `admitted`, without which the API server refuses the claim of a gated job."""
    job = snapshot.job
    if not job.gated or job.admitted or first_closed(snapshot, now):
        return None
    if any_holder(snapshot.others):
        return None
    return Admit(NAME, childless(snapshot))
