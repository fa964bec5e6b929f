"""The decision: an ordered chain of policies per phase. The first effect wins."""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decision import NOTHING, Decision, LineUp, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.policies.admission import admit
from asyncjob_operator.core.policies.cancel import cancel_running, cancel_waiting
from asyncjob_operator.core.policies.cascade import cascade
from asyncjob_operator.core.policies.deadline import deadline
from asyncjob_operator.core.policies.deletion import deletion
from asyncjob_operator.core.policies.dependency import dependency
from asyncjob_operator.core.policies.dismissal import dismiss
from asyncjob_operator.core.policies.duplicate import duplicate
from asyncjob_operator.core.policies.execution_timeout import execution_timeout
from asyncjob_operator.core.policies.hold import hold
from asyncjob_operator.core.policies.placeless import placeless
from asyncjob_operator.core.policies.promotion import (
    promote_pending,
    promote_retrying,
    promote_scheduled,
)
from asyncjob_operator.core.policies.queue_timeout import queue_timeout
from asyncjob_operator.core.policies.recovery import recovery
from asyncjob_operator.core.policies.redrive import redrive
from asyncjob_operator.core.policies.rerun import rerun
from asyncjob_operator.core.policies.stranded import stranded
from asyncjob_operator.core.policies.unknown_type import unknown_type
from asyncjob_operator.core.snapshot import Policy, Snapshot

CHAINS: Final[dict[Phase, tuple[Policy, ...]]] = {
    Phase.QUEUED: (
        cancel_waiting,
        cascade,
        deadline,
        duplicate,
        dependency,
        hold,
        placeless,
        stranded,
        admit,
        queue_timeout,
        unknown_type,
        rerun,
    ),
    Phase.PENDING: (
        cancel_waiting,
        cascade,
        deadline,
        duplicate,
        dependency,
        promote_pending,
        rerun,
    ),
    Phase.SCHEDULED: (cancel_waiting, cascade, deadline, duplicate, promote_scheduled, rerun),
    Phase.RETRYING: (cancel_waiting, cascade, duplicate, promote_retrying, rerun),
    Phase.RUNNING: (recovery, cascade, cancel_running, execution_timeout, rerun),
    Phase.DEAD_LETTER: (dismiss, redrive, rerun),
    Phase.SUCCEEDED: (rerun,),
    Phase.CANCELLED: (rerun,),
}


DELETED_CHAINS: Final[dict[Phase, tuple[Policy, ...]]] = {
    **dict.fromkeys(
        (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING), (deletion, cancel_waiting)
    ),
    Phase.RUNNING: (deletion, recovery, cancel_running, execution_timeout),
}
"""Of a job that is being deleted only what it holds is given back."""


def decide(snapshot: Snapshot, now: Moment) -> Decision:
    """Return the one effect due now, or when to look again without anything having changed."""
    job = snapshot.job
    chain = DELETED_CHAINS.get(job.phase, ()) if job.deleting else CHAINS[job.phase]
    again: float | None = None
    lines_up = False
    for policy in chain:
        verdict = policy(snapshot, now)
        match verdict:
            case None:
                continue
            case LineUp():
                lines_up = True
            case Wait():
                again = verdict.until if again is None else min(again, verdict.until)
            case _:
                return Decision(verdict, lines_up=lines_up)
    return Decision(None, again, lines_up) if lines_up or again is not None else NOTHING
