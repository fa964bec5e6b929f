"""`spec.cancel` on a dead letter: a person has seen it and lets it go."""

from typing import Final

from asyncjob.lifecycle.gate import drop
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import Transition, Verdict
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "dismiss"


def dismiss(snapshot: Snapshot, now: Moment) -> Verdict:
    """Dismiss the dead letter."""
    job = snapshot.job
    if not job.wishes.cancel:
        return None
    message = f"dismissed; was a dead letter: {job.reason}"
    return Transition(NAME, drop(job, Reason.DISMISSED, message, now=now.text))
