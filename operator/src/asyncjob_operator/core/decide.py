"""The decision: an ordered chain of policies per phase. The first effect wins."""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decision import NO_ACTION, AwaitReservation, Decision, Wait
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.cancellation import (
    cancel_deleted,
    cancel_running,
    cancel_waiting,
    cascade_cancel,
    enforce_deadline,
)
from asyncjob_operator.core.policies.dead_letters import (
    enforce_queue_timeout,
    fail_on_dependency,
    reject_unknown_type,
)
from asyncjob_operator.core.policies.deduplication import cancel_duplicate
from asyncjob_operator.core.policies.finished import dismiss, redrive, rerun
from asyncjob_operator.core.policies.gates import (
    admit,
    hold_back,
    promote_pending,
    promote_retrying,
    promote_scheduled,
    withdraw_unreserved,
    withdraw_unserved,
)
from asyncjob_operator.core.policies.recovery import enforce_execution_timeout, recover
from asyncjob_operator.core.snapshot import Policy, Snapshot

POLICY_CHAINS: Final[dict[Phase, tuple[Policy, ...]]] = {
    Phase.QUEUED: (
        cancel_waiting,
        cascade_cancel,
        enforce_deadline,
        cancel_duplicate,
        fail_on_dependency,
        hold_back,
        withdraw_unreserved,
        withdraw_unserved,
        admit,
        enforce_queue_timeout,
        reject_unknown_type,
        rerun,
    ),
    Phase.PENDING: (
        cancel_waiting,
        cascade_cancel,
        enforce_deadline,
        cancel_duplicate,
        fail_on_dependency,
        promote_pending,
        rerun,
    ),
    Phase.SCHEDULED: (
        cancel_waiting,
        cascade_cancel,
        enforce_deadline,
        cancel_duplicate,
        promote_scheduled,
        rerun,
    ),
    Phase.RETRYING: (cancel_waiting, cascade_cancel, cancel_duplicate, promote_retrying, rerun),
    Phase.RUNNING: (recover, cascade_cancel, cancel_running, enforce_execution_timeout, rerun),
    Phase.DEAD_LETTER: (dismiss, redrive, rerun),
    Phase.SUCCEEDED: (rerun,),
    Phase.CANCELLED: (rerun,),
}


DELETION_CHAINS: Final[dict[Phase, tuple[Policy, ...]]] = {
    **dict.fromkeys(
        (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING),
        (cancel_deleted, cancel_waiting),
    ),
    Phase.RUNNING: (cancel_deleted, recover, cancel_running, enforce_execution_timeout),
}
"""Of a job that is being deleted only what it holds is given back."""


def decide(snapshot: Snapshot, now: Now) -> Decision:
    """Return the one effect due now, or when to look again without anything having changed."""
    job = snapshot.job
    chain = DELETION_CHAINS.get(job.phase, ()) if job.deleting else POLICY_CHAINS[job.phase]
    again: float | None = None
    lines_up = False
    for policy in chain:
        verdict = policy(snapshot, now)
        match verdict:
            case None:
                continue
            case AwaitReservation():
                lines_up = True
            case Wait():
                again = verdict.until if again is None else min(again, verdict.until)
            case _:
                return Decision(verdict, awaits_reservation=lines_up)
    return Decision(None, again, lines_up) if lines_up or again is not None else NO_ACTION
