"""Jobs of dead workers: at once where the death is proven, else when the lease has run out."""

from typing import Final

from asyncjob.lifecycle.move import PhaseChange
from asyncjob.lifecycle.outcome import cancel_running_job, crash, release
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.death import HolderLoss, loss_on_expiry, proven_loss
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, Wait
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

RECOVERY: Final = "recover"


def recover(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Take the job from a dead worker: through the retry flow, or back to the queue."""
    job, lease = snapshot.job, snapshot.job.lease
    if lease is None or not snapshot.options.recovery:
        return None
    death = proven_loss(job, lease, snapshot.holder, snapshot.observation.entered_at, now)
    if not isinstance(death, HolderLoss):
        expires_at = (
            snapshot.observation.renewed_at + lease.duration_seconds + snapshot.options.lease_margin
        )
        if now.monotonic < expires_at:
            return Wait(min(expires_at, death.until) if death else expires_at)
        death = loss_on_expiry(job, lease, snapshot.holder)
    return ChangePhase(RECOVERY, _loss_outcome(job, death, now), death.precondition)


def _loss_outcome(job: JobView, loss: HolderLoss, now: Now) -> PhaseChange:
    if job.control.cancel:
        return cancel_running_job(
            job, f"cancelled by spec.cancel; {loss.message}", now=now.timestamp
        )
    take = crash if loss.is_crash else release
    return take(job, loss.reason, loss.message, now=now.timestamp, draw=now.jitter)
