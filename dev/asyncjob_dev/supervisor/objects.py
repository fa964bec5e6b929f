"""The Kubernetes objects a worker process needs. Pure builders."""

from collections.abc import Mapping
from typing import Any

from asyncjob_dev.supervisor.containers import CONTAINER, Container, rfc3339

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


def build_token_request(pod_name: str, pod_uid: str, seconds: int) -> dict[str, Any]:
    """Return a TokenRequest for a token that is bound to this very Pod."""
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod_name, "uid": pod_uid}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds, "boundObjectRef": bound},
    }


def _phase(container: Container, *, restart: bool) -> str:
    if container.ended is None or restart:
        return "Running"
    return "Failed" if container.ended.exit_code else "Succeeded"
