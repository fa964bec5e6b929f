"""The Kubernetes objects of worker processes.

Container and Pod status as a kubelet writes them, builders, and the few kinds that are applied
before a worker starts. For anything else there is kubectl.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from asyncjob_dev.api import Api
from asyncjob_dev.errors import DevError

CONTAINER = "worker"
RUNTIME = "asyncjob-dev"
SIGNAL_OFFSET = 128


@dataclass(frozen=True)
class ContainerTermination:
    """How a container ended."""

    exit_code: int
    reason: str
    started: datetime
    finished: datetime
    container_id: str

    def as_state(self) -> dict[str, Any]:
        """Return the API's ContainerState."""
        return {
            "terminated": {
                "exitCode": self.exit_code,
                "reason": self.reason,
                "startedAt": rfc3339(self.started),
                "finishedAt": rfc3339(self.finished),
                "containerID": self.container_id,
            }
        }


@dataclass(frozen=True)
class Container:
    """The container since its newest start; `ended` is None while it runs."""

    image: str
    container_id: str
    started: datetime
    restarts: int = 0
    ended: ContainerTermination | None = None
    before: ContainerTermination | None = None

    def end(self, returncode: int, now: datetime, reason: str = "") -> "Container":
        """Return it after its process ended (negative: by which signal)."""
        code = exit_code(returncode)
        why = reason or ("Error" if code else "Completed")
        return replace(
            self, ended=ContainerTermination(code, why, self.started, now, self.container_id)
        )

    def restart(self, container_id: str, now: datetime) -> "Container":
        """Return it after it was started again in the same Pod."""
        return replace(
            self,
            container_id=container_id,
            started=now,
            restarts=self.restarts + 1,
            ended=None,
            before=self.ended,
        )

    def as_status(self) -> dict[str, Any]:
        """Return the API's ContainerStatus."""
        running = {"running": {"startedAt": rfc3339(self.started)}}
        return {
            "name": CONTAINER,
            "image": self.image,
            "imageID": "",
            "containerID": self.container_id,
            "ready": self.ended is None,
            "started": self.ended is None,
            "restartCount": self.restarts,
            "state": self.ended.as_state() if self.ended else running,
            "lastState": self.before.as_state() if self.before else {},
        }


def read_container(pod: Mapping[str, Any]) -> Container | None:
    """Return the container of a Pod that runs or has ended; None if nothing is known of it."""
    [status] = pod.get("status", {}).get("containerStatuses") or [None]
    if status is None:
        return None
    ended = _read_termination(status["state"])
    running = status["state"].get("running", {}).get("startedAt")
    if ended is None and running is None:
        return None
    return Container(
        image=status["image"],
        container_id=status["containerID"],
        started=ended.started if ended else datetime.fromisoformat(running),
        restarts=status["restartCount"],
        ended=ended,
        before=_read_termination(status["lastState"]),
    )


def _read_termination(state: Mapping[str, Any]) -> ContainerTermination | None:
    found = state.get("terminated")
    return found and ContainerTermination(
        exit_code=found["exitCode"],
        reason=found["reason"],
        started=datetime.fromisoformat(found["startedAt"]),
        finished=datetime.fromisoformat(found["finishedAt"]),
        container_id=found["containerID"],
    )


def exit_code(returncode: int) -> int:
    """Return 137 for SIGKILL and so on, as a kubelet reports it."""
    return SIGNAL_OFFSET - returncode if returncode < 0 else returncode


def container_id(pid: int, restarts: int) -> str:
    """Return an id no other start in this Pod has."""
    return f"{RUNTIME}://{pid}-{restarts}"


def rfc3339(moment: datetime) -> str:
    """Return the API's form of a time, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MANAGER = "asyncjob-dev"
MANAGED_BY = {"app.kubernetes.io/managed-by": MANAGER}
IMAGE = "asyncjob-dev/process"


def build_namespace(name: str) -> dict[str, Any]:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def build_service_account(name: str, space: str) -> dict[str, Any]:
    """Return a ServiceAccount."""
    metadata = {"name": name, "namespace": space}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def build_pod(
    name: str, *, account: str, node: str, labels: Mapping[str, str], restart: bool
) -> dict[str, Any]:
    """Return the Pod of one worker.

    Naming a node keeps schedulers away; the Node need not exist.
    """
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {**labels, **MANAGED_BY}},
        "spec": {
            "nodeName": node,
            "serviceAccountName": account,
            "automountServiceAccountToken": False,
            "restartPolicy": "Always" if restart else "Never",
            "containers": [{"name": CONTAINER, "image": IMAGE}],
        },
    }


def build_pod_status(container: Container, *, restart: bool) -> dict[str, Any]:
    """Return the Pod's status as a kubelet would write it."""
    ready = "False" if container.ended else "True"
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Initialized", "status": "True"},
        {"type": "ContainersReady", "status": ready},
        {"type": "Ready", "status": ready},
    ]
    return {
        "phase": _phase(container, restart=restart),
        "conditions": conditions,
        "startTime": rfc3339(container.started),
        "containerStatuses": [container.as_status()],
    }


def _phase(container: Container, *, restart: bool) -> str:
    if container.ended is None or restart:
        return "Running"
    return "Failed" if container.ended.exit_code else "Succeeded"


RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLUSTER_SCOPED = {
    "Namespace": "/api/v1/namespaces",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
}
NAMESPACED = {
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": (RBAC, "roles"),
    "RoleBinding": (RBAC, "rolebindings"),
}


def read_manifests(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Yield every object in the files, those inside a List one by one."""
    for file in files:
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if document:
                yield from document["items"] if document["kind"] == "List" else [document]


def path_of(document: dict[str, Any], namespace: str) -> str:
    """Return where the object lives; `namespace` counts where it names none."""
    kind, metadata = document["kind"], document["metadata"]
    if kind in CLUSTER_SCOPED:
        return f"{CLUSTER_SCOPED[kind]}/{metadata['name']}"
    if kind not in NAMESPACED:
        known = ", ".join([*CLUSTER_SCOPED, *NAMESPACED])
        raise DevError(f"{kind} {metadata['name']}: only {known}; apply the rest with kubectl")
    root, plural = NAMESPACED[kind]
    return f"{root}/namespaces/{metadata.get('namespace', namespace)}/{plural}/{metadata['name']}"


def apply_manifest(api: Api, document: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Create the object or bring it up to date."""
    return api.apply(path_of(document, namespace), document, MANAGER)
