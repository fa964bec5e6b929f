"""A queued job with gates, all of them open, is admitted where it stands."""

from typing import Final

from asyncjob_operator.core.decision import Admit, Verdict
from asyncjob_operator.core.gates import first_closed
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "admit"


def admit(snapshot: Snapshot, now: Moment) -> Verdict:
    """Set `admitted`, without which the API server refuses the claim of a gated job."""
    job = snapshot.job
    if not job.gated or job.admitted or first_closed(snapshot, now):
        return None
    return Admit(NAME)
