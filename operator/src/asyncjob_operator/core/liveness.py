"""Whether the process that holds a job's lease is lost, and whether the loss counts as a crash.

A container that terminated, or a newer process of the same pod, is proof. A pod that is merely
gone is none: on a lost node it may still run, so its leases have to expire.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob.lifecycle.job_view import JobView, LeaseView
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import PodGone, Precondition, Wait, WorkerReplaced
from asyncjob_operator.core.now import Now, to_epoch

WORKER_CONTAINER: Final = "worker"
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_FINAL_PHASES: Final = frozenset({"Failed", "Succeeded"})
_DISRUPTION_REASONS: Final = frozenset(
    {"Evicted", "Preempting", "NodeLost", "Shutdown", "Terminated"}
)
_POD_GC_REASON: Final = "DeletionByPodGC"


@dataclass(frozen=True, slots=True)
class ContainerTermination:
    """How the worker's container last ended.

    `finished_at` is the node's clock, cut to whole seconds.
    """

    finished_at: float
    exit_code: int
    reason: str
    restarted: bool


@dataclass(frozen=True, slots=True)
class PodView:
    """A worker's pod: is it on its way out, is it over, and how did its container last end."""

    namespace: str
    name: str
    uid: str
    deleting: bool
    terminated: bool
    disrupted: bool
    termination: ContainerTermination | None

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


def is_same_termination(one: ContainerTermination, other: ContainerTermination) -> bool:
    """Return whether it is one ending, whatever has become of the container since."""
    return replace(one, restarted=other.restarted) == other


def read_pod(obj: JsonObject) -> PodView:
    """Read a Pod.

    `over`: the kubelet says that no container of it runs or ever will. A pod that the garbage
    collector merely presumes failed, because its node is gone, does not count.
    """
    meta, status = child(obj, "metadata"), child(obj, "status")
    disruption = _disruption_reason(status)
    return PodView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        deleting="deletionTimestamp" in meta,
        terminated=text(status, "phase") in _FINAL_PHASES and disruption != _POD_GC_REASON,
        disrupted=bool(disruption) or text(status, "reason") in _DISRUPTION_REASONS,
        termination=_last_termination(_worker_container(meta, status)),
    )


def _disruption_reason(status: JsonObject) -> str:
    for condition in map(as_object, items(status, "conditions")):
        if text(condition, "type") == "DisruptionTarget" and text(condition, "status") == "True":
            return text(condition, "reason") or "DisruptionTarget"
    return ""


def _worker_container(meta: JsonObject, status: JsonObject) -> JsonObject:
    """Return the status of the container that runs the worker; a sidecar's end means nothing."""
    statuses: Sequence[JsonObject] = [
        as_object(item) for item in items(status, "containerStatuses")
    ]
    named = (text(child(meta, "annotations"), _DEFAULT_CONTAINER), WORKER_CONTAINER)
    for name in named:
        for container in statuses:
            if name and text(container, "name") == name:
                return container
    return statuses[0] if len(statuses) == 1 else {}


def _last_termination(container: JsonObject) -> ContainerTermination | None:
    return max(_terminations(container), key=lambda ending: ending.finished_at, default=None)


def _terminations(container: JsonObject) -> Iterator[ContainerTermination]:
    for name in ("state", "lastState"):
        terminated = child(child(container, name), "terminated")
        finished = text(terminated, "finishedAt")
        if finished:
            code, reason = integer(terminated, "exitCode"), text(terminated, "reason")
            yield ContainerTermination(
                to_epoch(finished, default=0.0), code, reason, restarted=name == "lastState"
            )


WATCH_SKEW_SECONDS: Final = 1.0
"""Pods and jobs come over two watches: what is seen so much earlier did happen earlier."""

RESTART_LAG_SECONDS: Final = 10.0
"""A restarted container may already work before its pod says so, but not for so long."""

RESTART_SETTLE_SECONDS: Final = 3.0
"""A container that has not been started again for so long did not make that last claim anew."""

NEVER_SEEN: Final = float("inf")


@dataclass(frozen=True, slots=True)
class HolderStatus:
    """What this replica knows of a lease's pod.

    `pods_known` is False without permission to see pods. `newest_worker` is the identity of the
    newest process announced for this very pod, empty if unknown, and `newest_worker_since` is since
    when this replica has known that and had the pod in sight without a break. Times are monotonic.
    """

    pods_known: bool = False
    pod: PodView | None = None
    newest_worker: str = ""
    newest_worker_since: float = NEVER_SEEN
    termination_seen_at: float = 0.0


UNKNOWN_HOLDER: Final = HolderStatus()


@dataclass(frozen=True, slots=True)
class HolderLoss:
    """A crash is charged to the job's crash budget, a release is nobody's fault."""

    is_crash: bool
    reason: Reason
    message: str
    precondition: Precondition | None = None


LossVerdict = HolderLoss | Wait | None


def proven_loss(
    job: JobView, lease: LeaseView, holder: HolderStatus, claimed_at: float, now: Now
) -> LossVerdict:
    """Return the proven death of the lease's process, or when to look for it again.

    `claimed_at` is when this replica first saw the claim. Order is told by its own clock alone:
    the times in job and pod are those of two machines.
    """
    pod = holder.pod
    if pod and pod.terminated:
        return _classify_loss(pod, pod.termination, lease)
    if holder.newest_worker and holder.newest_worker != lease.worker:
        proof = WorkerReplaced(job.namespace, lease.holder, lease.worker)
        return _classify_loss(pod, pod.termination if pod else None, lease, proof)
    if pod and pod.termination:
        settled_at = _settled_at(pod.termination, holder, claimed_at)
        if settled_at is not None:
            waiting = now.monotonic < settled_at
            return Wait(settled_at) if waiting else _classify_loss(pod, pod.termination, lease)
    return None


def _settled_at(
    termination: ContainerTermination, holder: HolderStatus, claimed_at: float
) -> float | None:
    """Return when it is settled that the ending is that of the claim's process; None: it is not.

    A process announces itself before its first claim. One that was known long before the ending
    was seen is the one that ended, however fresh the claim.
    """
    seen_at = holder.termination_seen_at
    if holder.newest_worker and seen_at - holder.newest_worker_since > RESTART_LAG_SECONDS:
        return seen_at
    held_for = seen_at - claimed_at
    if termination.restarted:
        return seen_at if held_for > RESTART_LAG_SECONDS else None
    return (
        seen_at
        if held_for > WATCH_SKEW_SECONDS
        else max(seen_at, claimed_at) + RESTART_SETTLE_SECONDS
    )


def loss_on_expiry(job: JobView, lease: LeaseView, holder: HolderStatus) -> HolderLoss:
    """Return what to make of a lease that ran out."""
    if not holder.pods_known:
        return HolderLoss(
            is_crash=True, reason=Reason.LEASE_EXPIRED, message=_no_heartbeat_message(lease)
        )
    if holder.pod is None:
        message = f"pod {lease.holder} is gone and its lease has ended"
        proof = PodGone(job.namespace, lease.holder, lease.holder_uid)
        return HolderLoss(
            is_crash=False, reason=Reason.WORKER_GONE, message=message, precondition=proof
        )
    if holder.pod.deleting or holder.pod.disrupted:
        message = f"pod {lease.holder} was deleted or disrupted and its lease has ended"
        return HolderLoss(is_crash=False, reason=Reason.WORKER_GONE, message=message)
    return HolderLoss(
        is_crash=True, reason=Reason.LEASE_EXPIRED, message=_no_heartbeat_message(lease)
    )


def _no_heartbeat_message(lease: LeaseView) -> str:
    return f"no heartbeat of {lease.worker} for {lease.duration_seconds} s"


def _classify_loss(
    pod: PodView | None,
    termination: ContainerTermination | None,
    lease: LeaseView,
    precondition: Precondition | None = None,
) -> HolderLoss:
    if pod and (pod.deleting or pod.disrupted):
        message = f"pod {lease.holder} was deleted or disrupted"
        return HolderLoss(
            is_crash=False, reason=Reason.WORKER_GONE, message=message, precondition=precondition
        )
    if termination is None:
        message = f"{lease.worker} was replaced by a newer process of its pod"
        return HolderLoss(
            is_crash=True, reason=Reason.WORKER_CRASHED, message=message, precondition=precondition
        )
    how = f"exit code {termination.exit_code}" + (
        f", {termination.reason}" if termination.reason else ""
    )
    message = f"the container of pod {lease.holder} ended: {how}"
    if termination.exit_code == 0:
        return HolderLoss(
            is_crash=False, reason=Reason.WORKER_GONE, message=message, precondition=precondition
        )
    return HolderLoss(
        is_crash=True, reason=Reason.WORKER_CRASHED, message=message, precondition=precondition
    )
