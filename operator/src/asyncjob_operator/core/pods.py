"""What a worker's pod tells of its container's end; nothing else of a pod is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob_operator.core.moment import to_epoch

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
