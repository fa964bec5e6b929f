"""`spec.cancel` on a dead letter: a person has seen it and lets it go."""

from typing import Final

from asyncjob.lifecycle.gate import cancel_waiting_job
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, PolicyResult
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

DISMISS: Final = "dismiss"


def dismiss(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Dismiss the dead letter."""
    job = snapshot.job
    if not job.control.cancel:
        return None
    message = f"dismissed; was a dead letter: {job.reason}"
    return ChangePhase(
        DISMISS, cancel_waiting_job(job, Reason.DISMISSED, message, now=now.timestamp)
    )
