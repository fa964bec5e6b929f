"""Whether the process that holds a lease is dead, and whose fault that is.

A container that ended, or a newer process of the same pod, is proof. A pod that is merely gone is
none: on a lost node it may still run, so its leases have to run out.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.view import JobView, LeaseView
from asyncjob_operator.core.decision import PodGone, Proof, Wait, WorkerReplaced
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.pods import Ending, PodView

ORDER_SECONDS: Final = 1.0
"""Pods and jobs come over two watches: what is seen so much earlier did happen earlier."""

RESTART_LAG_SECONDS: Final = 10.0
"""A restarted container may already work before its pod says so, but not for so long."""

SETTLE_SECONDS: Final = 3.0
"""A container that has not been started again for so long did not make that last claim anew."""

UNSEEN: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Holder:
    """What this replica knows of a lease's pod.

    `pods_known` is False without permission to see pods. `newest` is the identity of the newest
    process announced for this very pod, empty if unknown, and `newest_since` is since when this
    replica has known that and had the pod in sight without a break. Times are monotonic.
    """

    pods_known: bool = False
    pod: PodView | None = None
    newest: str = ""
    newest_since: float = UNSEEN
    ending_seen_at: float = 0.0


NOBODY: Final = Holder()


@dataclass(frozen=True, slots=True)
class Death:
    """A crash is charged to the job's crash budget, a release is nobody's fault."""

    crash: bool
    reason: Reason
    message: str
    proof: Proof | None = None


Verdict = Death | Wait | None


def ended(
    job: JobView, lease: LeaseView, holder: Holder, claimed_at: float, now: Moment
) -> Verdict:
    """Return the proven death of the lease's process, or when to look for it again.

    `claimed_at` is when this replica first saw the claim. Order is told by its own clock alone:
    the times in job and pod are those of two machines.
    """
    pod = holder.pod
    if pod and pod.over:
        return _blame(pod, pod.ending, lease)
    if holder.newest and holder.newest != lease.worker:
        proof = WorkerReplaced(job.namespace, lease.holder, lease.worker)
        return _blame(pod, pod.ending if pod else None, lease, proof)
    if pod and pod.ending:
        settled_at = _settled_at(pod.ending, holder, claimed_at)
        if settled_at is not None:
            waiting = now.monotonic < settled_at
            return Wait(settled_at) if waiting else _blame(pod, pod.ending, lease)
    return None


def _settled_at(ending: Ending, holder: Holder, claimed_at: float) -> float | None:
    """Return when it is settled that the ending is that of the claim's process; None: it is not.

    A process announces itself before its first claim. One that was known long before the ending
    was seen is the one that ended, however fresh the claim.
    """
    seen_at = holder.ending_seen_at
    if holder.newest and seen_at - holder.newest_since > RESTART_LAG_SECONDS:
        return seen_at
    held_for = seen_at - claimed_at
    if ending.running_again:
        return seen_at if held_for > RESTART_LAG_SECONDS else None
    return seen_at if held_for > ORDER_SECONDS else max(seen_at, claimed_at) + SETTLE_SECONDS


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
