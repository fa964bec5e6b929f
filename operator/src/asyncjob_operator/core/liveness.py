"""Whether the process that holds a job's lease is lost, and whether the loss counts as a crash.

A container that is down, or a newer process of the same pod, is proof. A pod that is merely gone is
none: on a lost node it may still run, so its leases have to expire. Where a container has ended and
runs again, its end counts if the holder was known for long before that was written; else the newer
process has to announce itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob.lifecycle.job_view import JobView, LeaseView
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import (
    ContainerDown,
    PodGone,
    Precondition,
    Wait,
    WorkerReplaced,
)
from asyncjob_operator.core.now import Now, to_epoch

WORKER_CONTAINER: Final = "worker"
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_ENDED_POD_PHASES: Final = frozenset({"Failed", "Succeeded"})
_DISRUPTION_REASONS: Final = frozenset(
    {"Evicted", "Preempting", "NodeLost", "Shutdown", "Terminated"}
)
_POD_GC_REASON: Final = "DeletionByPodGC"
_READINESS_GATES_REASON: Final = "ReadinessGatesNotReady"


@dataclass(frozen=True, slots=True)
class ContainerTermination:
    """How the worker's container last ended."""

    finished_at: float
    """Epoch seconds by the node's clock, in whole seconds."""

    exit_code: int
    reason: str
    restarted: bool
    """Whether the container runs again."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A worker's pod."""

    namespace: str
    name: str
    uid: str
    deleting: bool
    terminated: bool
    """Whether the kubelet reports that no container of it runs or ever will."""

    disrupted: bool
    """Whether it was, or is being, evicted or preempted, or its node does not report any more."""

    termination: ContainerTermination | None
    """How the worker's container last ended, None if it never has."""


def is_same_termination(one: ContainerTermination, other: ContainerTermination) -> bool:
    """Return whether both are the same end, even if the container was restarted since."""
    return replace(one, restarted=other.restarted) == other


def status_written(pod: JsonObject) -> float | None:
    """Return when a pod's status was written last, in epoch seconds by the API server's clock."""
    entries = map(as_object, items(child(pod, "metadata"), "managedFields"))
    times = (
        to_epoch(text(entry, "time"), default=0.0)
        for entry in entries
        if text(entry, "subresource") == "status"
    )
    return max(times, default=None)


def read_pod(obj: JsonObject) -> PodView:
    """Read a Pod.

    A pod that the garbage collector merely presumes failed, because its node is gone, does not
    count as terminated.
    """
    meta, status = child(obj, "metadata"), child(obj, "status")
    disruption = _disruption_reason(status)
    disrupted = bool(disruption) or text(status, "reason") in _DISRUPTION_REASONS
    return PodView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        deleting="deletionTimestamp" in meta,
        terminated=text(status, "phase") in _ENDED_POD_PHASES and disruption != _POD_GC_REASON,
        disrupted=disrupted or _is_node_lost(status),
        termination=_last_termination(_worker_container(meta, status)),
    )


def _disruption_reason(status: JsonObject) -> str:
    for condition in map(as_object, items(status, "conditions")):
        if text(condition, "type") == "DisruptionTarget" and text(condition, "status") == "True":
            return text(condition, "reason") or "DisruptionTarget"
    return ""


def _is_node_lost(status: JsonObject) -> bool:
    """Return whether Kubernetes has found that the pod's node does not report any more.

    The node lifecycle controller then sets Ready to False and leaves all else as the kubelet wrote
    it last. A kubelet writes that while its containers are ready only for a readiness gate.
    """
    conditions = {
        text(condition, "type"): condition
        for condition in map(as_object, items(status, "conditions"))
    }
    ready, containers_ready = conditions.get("Ready", {}), conditions.get("ContainersReady", {})
    return (
        text(ready, "status") == "False"
        and text(containers_ready, "status") == "True"
        and text(ready, "reason") != _READINESS_GATES_REASON
    )


def _worker_container(meta: JsonObject, status: JsonObject) -> JsonObject:
    """Return the status of the container that runs the worker; a sidecar does not count."""
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
    return max(
        _terminations(container), key=lambda termination: termination.finished_at, default=None
    )


def _terminations(container: JsonObject) -> Iterator[ContainerTermination]:
    runs_again = "running" in child(container, "state")
    for name in ("state", "lastState"):
        terminated = child(child(container, name), "terminated")
        finished = text(terminated, "finishedAt")
        if finished:
            yield ContainerTermination(
                to_epoch(finished, default=0.0),
                integer(terminated, "exitCode"),
                text(terminated, "reason"),
                restarted=runs_again,
            )


RESTART_LAG_SECONDS: Final = 10.0
"""Seconds that a restarted container may at most run before its pod's status shows it."""

CLOCK_SECONDS: Final = 1.0
"""When a status was written is told in whole seconds."""

NEVER_SEEN: Final = float("inf")

RESTART_SETTLE_SECONDS: Final = 3.0
"""This long after a claim was first seen, the status of its pod has to show the container that made
the claim as running: its process took a second or two to start, too."""


@dataclass(frozen=True, slots=True)
class HolderStatus:
    """What this replica knows of the pod that holds a lease; times are monotonic seconds."""

    pods_known: bool = False
    """Whether pods have been listed; never without the permission to."""

    pod: PodView | None = None
    """The pod with the UID that the lease names, None if it is gone or unknown."""

    newest_worker: str = ""
    """Identity of the newest process announced for this very pod, empty if unknown."""

    newest_worker_since: float = NEVER_SEEN
    """Since when this replica has known that, while watching pods without a break."""

    termination_shown_at: float | None = None
    """When the pod's termination was written, not when it was seen; None if that is unknown."""


UNKNOWN_HOLDER: Final = HolderStatus()


@dataclass(frozen=True, slots=True)
class HolderLoss:
    """That the process which holds a lease is lost."""

    is_crash: bool
    """Whether it counts as a crash of the job; a release, nobody's fault, does not."""

    reason: Reason
    message: str
    precondition: Precondition | None = None


LossVerdict = HolderLoss | Wait | None


def proven_loss(
    job: JobView, lease: LeaseView, holder: HolderStatus, claimed_at: float, now: Now
) -> LossVerdict:
    """Return the loss of the lease's process if it is proven, or when to check for it again.

    `claimed_at` is when this replica first saw the claim. Watches may be late by any time, one more
    than the other: an end counts by when it was written, or is read again before it counts.
    """
    pod = holder.pod
    if pod and pod.terminated:
        return _classify_loss(pod, pod.termination, lease)
    if holder.newest_worker and holder.newest_worker != lease.worker:
        precondition = WorkerReplaced(job.namespace, lease.holder, lease.worker)
        return _classify_loss(pod, pod.termination if pod else None, lease, precondition)
    if pod and pod.termination and _is_of_newest_process(holder):
        return _classify_loss(pod, pod.termination, lease)
    if pod and pod.termination and not pod.termination.restarted:
        # Had a newer process made the claim, its container would by then be seen to run.
        settled_at = claimed_at + RESTART_SETTLE_SECONDS
        if now.monotonic < settled_at:
            return Wait(settled_at)
        ended = pod.termination
        down = ContainerDown(job.namespace, pod.name, pod.uid, ended.finished_at, ended.exit_code)
        return _classify_loss(pod, ended, lease, down)
    return None


def _is_of_newest_process(holder: HolderStatus) -> bool:
    """Return whether it is the newest process whose container has ended.

    It had registered more than 11 s before that status was written. A status is at most 10 s late,
    so what it shows is the end of this process and not of one before.
    """
    if not holder.newest_worker or holder.termination_shown_at is None:
        return False
    known_for = holder.termination_shown_at - holder.newest_worker_since
    return known_for > RESTART_LAG_SECONDS + CLOCK_SECONDS


def loss_on_expiry(job: JobView, lease: LeaseView, holder: HolderStatus) -> HolderLoss:
    """Return how a lease that has expired counts."""
    if not holder.pods_known:
        return HolderLoss(
            is_crash=True, reason=Reason.LEASE_EXPIRED, message=_no_heartbeat_message(lease)
        )
    if holder.pod is None:
        message = f"pod {lease.holder} is gone and its lease has ended"
        precondition = PodGone(job.namespace, lease.holder, lease.holder_uid)
        return HolderLoss(
            is_crash=False, reason=Reason.WORKER_GONE, message=message, precondition=precondition
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
        message = (
            f"pod {lease.holder} has ended"
            if pod and pod.terminated
            else f"{lease.worker} was replaced by a newer process of its pod"
        )
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
