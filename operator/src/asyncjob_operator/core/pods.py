"""What a worker's pod tells of its container's end; nothing else of a pod is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, as_object, child, integer, items, text
from asyncjob_operator.core.moment import epoch

WORKER_CONTAINER: Final = "worker"
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
_FINAL: Final = frozenset({"Failed", "Succeeded"})
_DISRUPTIONS: Final = frozenset({"Evicted", "Preempting", "NodeLost", "Shutdown", "Terminated"})
_PRESUMED: Final = "DeletionByPodGC"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the worker's container last ended; `at` is the node's clock, cut to whole seconds."""

    at: float
    exit_code: int
    reason: str
    running_again: bool


@dataclass(frozen=True, slots=True)
class PodView:
    """A worker's pod: is it on its way out, is it over, and how did its container last end."""

    namespace: str
    name: str
    uid: str
    deleting: bool
    over: bool
    disrupted: bool
    ending: Ending | None

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


def same(one: Ending, other: Ending) -> bool:
    """Return whether it is one ending, whatever has become of the container since."""
    return replace(one, running_again=other.running_again) == other


def read_pod(obj: JsonObject) -> PodView:
    """Read a Pod.

    `over`: the kubelet says that no container of it runs or ever will. A pod that the garbage
    collector merely presumes failed, because its node is gone, does not count.
    """
    meta, status = child(obj, "metadata"), child(obj, "status")
    disruption = _disruption(status)
    return PodView(
        namespace=text(meta, "namespace"),
        name=text(meta, "name"),
        uid=text(meta, "uid"),
        deleting="deletionTimestamp" in meta,
        over=text(status, "phase") in _FINAL and disruption != _PRESUMED,
        disrupted=bool(disruption) or text(status, "reason") in _DISRUPTIONS,
        ending=_ending(_worker_container(meta, status)),
    )


def _disruption(status: JsonObject) -> str:
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


def _ending(container: JsonObject) -> Ending | None:
    return max(_endings(container), key=lambda ending: ending.at, default=None)


def _endings(container: JsonObject) -> Iterator[Ending]:
    for name in ("state", "lastState"):
        terminated = child(child(container, name), "terminated")
        finished = text(terminated, "finishedAt")
        if finished:
            code, reason = integer(terminated, "exitCode"), text(terminated, "reason")
            yield Ending(
                epoch(finished, otherwise=0.0), code, reason, running_again=name == "lastState"
            )
