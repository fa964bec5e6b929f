"""Jobs of dead workers: at once where the death is proven, else when the lease has run out."""

from typing import Final

from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.outcome import cancelled, crash, release
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.death import Death, ended, silent
from asyncjob_operator.core.decision import Transition, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "recover"


def recovery(snapshot: Snapshot, now: Moment) -> Verdict:
    """Take the job from a dead worker: through the retry flow, or back to the queue."""
    job, lease = snapshot.job, snapshot.job.lease
    if lease is None or not snapshot.options.recovery:
        return None
    death = ended(job, lease, snapshot.holder, snapshot.seen.since, now)
    if not isinstance(death, Death):
        expires_at = (
            snapshot.seen.renewed_at + lease.duration_seconds + snapshot.options.lease_margin
        )
        if now.monotonic < expires_at:
            return Wait(min(expires_at, death.until) if death else expires_at)
        death = silent(job, lease, snapshot.holder)
    return Transition(NAME, _end(job, death, now), death.proof)


def _end(job: JobView, death: Death, now: Moment) -> Move:
    if job.wishes.cancel:
        return cancelled(job, f"cancelled by spec.cancel; {death.message}", now=now.text)
    take = crash if death.crash else release
    return take(job, death.reason, death.message, now=now.text, draw=now.draw)
