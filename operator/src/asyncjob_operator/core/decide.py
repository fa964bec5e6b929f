"""The decision about one job: an ordered chain of policies per phase, whose first effect wins."""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decision import NO_ACTION, AwaitReservation, Decision, Wait
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.cancellation import (
    cancel_deleted,
    cancel_running,
    cancel_waiting,
    cascade_cancel,
    end_past_deadline,
    enforce_deadline,
    enforce_start_deadline,
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
from asyncjob_operator.core.snapshot import PolicyFunction, Snapshot

POLICY_CHAINS: Final[dict[Phase, tuple[PolicyFunction, ...]]] = {
    Phase.QUEUED: (
        cancel_waiting,
        cascade_cancel,
        enforce_deadline,
        enforce_start_deadline,
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
        enforce_start_deadline,
        cancel_duplicate,
        fail_on_dependency,
        promote_pending,
        rerun,
    ),
    Phase.SCHEDULED: (
        cancel_waiting,
        cascade_cancel,
        enforce_deadline,
        enforce_start_deadline,
        cancel_duplicate,
        promote_scheduled,
        rerun,
    ),
    Phase.RETRYING: (
        cancel_waiting,
        cascade_cancel,
        enforce_deadline,
        cancel_duplicate,
        promote_retrying,
        rerun,
    ),
    Phase.RUNNING: (
        recover,
        cascade_cancel,
        cancel_running,
        end_past_deadline,
        enforce_execution_timeout,
        rerun,
    ),
    Phase.DEAD_LETTER: (dismiss, redrive, rerun),
    Phase.SUCCEEDED: (rerun,),
    Phase.CANCELLED: (rerun,),
}


DELETION_CHAINS: Final[dict[Phase, tuple[PolicyFunction, ...]]] = {
    **dict.fromkeys(
        (Phase.QUEUED, Phase.PENDING, Phase.SCHEDULED, Phase.RETRYING),
        (cancel_deleted, cancel_waiting),
    ),
    Phase.RUNNING: (cancel_deleted, recover, cancel_running, enforce_execution_timeout),
}
"""For a job that is being deleted: it only gives back what it holds."""


def decide(snapshot: Snapshot, now: Now) -> Decision:
    """Return the one effect due now, or when to evaluate the job again if nothing changes."""
    job = snapshot.job
    chain = DELETION_CHAINS.get(job.phase, ()) if job.deleting else POLICY_CHAINS[job.phase]
    requeue_at: float | None = None
    awaits_reservation = False
    for policy in chain:
        result = policy(snapshot, now)
        match result:
            case None:
                continue
            case AwaitReservation():
                awaits_reservation = True
            case Wait():
                requeue_at = result.until if requeue_at is None else min(requeue_at, result.until)
            case _:
                return Decision(result, awaits_reservation=awaits_reservation)
    return (
        Decision(None, requeue_at, awaits_reservation)
        if awaits_reservation or requeue_at is not None
        else NO_ACTION
    )
