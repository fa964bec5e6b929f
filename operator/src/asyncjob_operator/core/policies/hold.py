"""A queued job that has to wait goes where its waiting has a name: Scheduled or Pending."""

from typing import Final

from asyncjob.lifecycle.gate import hold as held
from asyncjob.lifecycle.gate import schedule
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import ChangePhase, PolicyResult
from asyncjob_operator.core.gates import first_closed_gate
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

HOLD: Final = "hold"


def hold_back(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Take a job with a closed gate out of the queue."""
    job = snapshot.job
    closed = first_closed_gate(snapshot, now)
    if closed is None:
        return None
    if closed.reason is Reason.NOT_BEFORE:
        return ChangePhase(HOLD, schedule(job, now=now.timestamp))
    return ChangePhase(HOLD, held(job, closed.reason, closed.message, now=now.timestamp))
