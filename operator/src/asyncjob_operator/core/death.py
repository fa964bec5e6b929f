"""Whether the process that holds a lease is dead, and whose fault that is.

A container that ended, or a newer process of the same pod, is proof. A pod that is merely gone is
none: on a lost node it may still run, so its leases have to run out.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.view import JobView, LeaseView
from asyncjob_operator.core.decision import PodGone, Proof, Wait, WorkerReplaced
from asyncjob_operator.core.moment import Moment, epoch
from asyncjob_operator.core.pods import Ending, PodView

CUT_SECONDS: Final = 1.0
"""An ending's time is cut to whole seconds: a claim may be older than it looks by so much."""

SETTLE_SECONDS: Final = 3.0
"""A container that has not been started again for so long did not make that last claim anew."""


@dataclass(frozen=True, slots=True)
class Holder:
    """What this replica knows of a lease's pod.

    `pods_known` is False without permission to see pods. `newest` is the identity of the newest
    process announced for this very pod, empty if unknown. `ending_seen_at` is monotonic.
    """

    pods_known: bool = False
    pod: PodView | None = None
    newest: str = ""
    ending_seen_at: float = 0.0


NOBODY: Final = Holder()


@dataclass(frozen=True, slots=True)
class Death:
    """A crash is charged to the job's crash budget, a release is nobody's fault."""

    crash: bool
    reason: Reason
    message: str
    proof: Proof | None = None


def ended(job: JobView, lease: LeaseView, holder: Holder, now: Moment) -> Death | Wait | None:
    """Return the proven death of the lease's process, or when to look for it again."""
    pod = holder.pod
    if pod and pod.over:
        return _blame(pod, pod.ending, lease)
    if holder.newest and holder.newest != lease.worker:
        proof = WorkerReplaced(job.namespace, lease.holder, lease.worker)
        return _blame(pod, pod.ending if pod else None, lease, proof)
    if pod and pod.ending and job.start_time:
        claimed_after = epoch(job.start_time) - pod.ending.at
        if claimed_after < 0:
            return _blame(pod, pod.ending, lease)
        if claimed_after < CUT_SECONDS and not pod.ending.running_again:
            settled_at = holder.ending_seen_at + SETTLE_SECONDS
            waiting = now.monotonic < settled_at
            return Wait(settled_at) if waiting else _blame(pod, pod.ending, lease)
    return None


def silent(job: JobView, lease: LeaseView, holder: Holder) -> Death:
    """Return what to make of a lease that ran out."""
    if not holder.pods_known:
        return Death(crash=True, reason=Reason.LEASE_EXPIRED, message=_silence(lease))
    if holder.pod is None:
        message = f"pod {lease.holder} is gone and its lease has ended"
        proof = PodGone(job.namespace, lease.holder, lease.holder_uid)
        return Death(crash=False, reason=Reason.WORKER_GONE, message=message, proof=proof)
    if holder.pod.deleting or holder.pod.disrupted:
        message = f"pod {lease.holder} was deleted or disrupted and its lease has ended"
        return Death(crash=False, reason=Reason.WORKER_GONE, message=message)
    return Death(crash=True, reason=Reason.LEASE_EXPIRED, message=_silence(lease))


def _silence(lease: LeaseView) -> str:
    return f"no heartbeat of {lease.worker} for {lease.duration_seconds} s"


def _blame(
    pod: PodView | None, ending: Ending | None, lease: LeaseView, proof: Proof | None = None
) -> Death:
    if pod and (pod.deleting or pod.disrupted):
        message = f"pod {lease.holder} was deleted or disrupted"
        return Death(crash=False, reason=Reason.WORKER_GONE, message=message, proof=proof)
    if ending is None:
        message = f"{lease.worker} was replaced by a newer process of its pod"
        return Death(crash=True, reason=Reason.WORKER_CRASHED, message=message, proof=proof)
    how = f"exit code {ending.exit_code}" + (f", {ending.reason}" if ending.reason else "")
    message = f"the container of pod {lease.holder} ended: {how}"
    if ending.exit_code == 0:
        return Death(crash=False, reason=Reason.WORKER_GONE, message=message, proof=proof)
    return Death(crash=True, reason=Reason.WORKER_CRASHED, message=message, proof=proof)
