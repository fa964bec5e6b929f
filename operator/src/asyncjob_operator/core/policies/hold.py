"""A queued job that has to wait goes where its waiting has a name: Scheduled or Pending."""

from typing import Final

from asyncjob.lifecycle.gate import hold as held
from asyncjob.lifecycle.gate import schedule
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import Transition, Verdict
from asyncjob_operator.core.gates import first_closed
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "hold"


def hold(snapshot: Snapshot, now: Moment) -> Verdict:
    """Take a job with a closed gate out of the queue."""
    job = snapshot.job
    closed = first_closed(snapshot, now)
    if closed is None:
        return None
    if closed.reason is Reason.NOT_BEFORE:
        return Transition(NAME, schedule(job, now=now.text))
    return Transition(NAME, held(job, closed.reason, closed.message, now=now.text))
