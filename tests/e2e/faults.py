"""What happens to pods: containers killed as the kernel would, deletions, evictions.

Killing is done by a privileged pod that sees all processes. That works on every target, which a
look at the node's own processes would not.
"""

import json
from typing import Any

from e2e.cluster import Cluster, until

NAMESPACE = "e2e-faults"


def sigkill(cluster: Cluster, namespace: str, pod: str, container: str) -> None:
    """SIGKILL every process of a container; returns once that is done."""
    found = cluster.get(namespace, "pod", pod)
    states = found["status"]["containerStatuses"]
    identity = next(state["containerID"] for state in states if state["name"] == container)
    name = f"kill-{found['metadata']['uid'][:8]}-{identity[-8:]}"
    cluster.apply("killer", name=name, victim=identity.rpartition("/")[2], node=_node(found))

    def phase() -> str | None:
        now = str(cluster.get(NAMESPACE, "pod", name)["status"]["phase"])
        return now if now in {"Succeeded", "Failed"} else None

    ended = until(phase, 60.0, lambda: cluster.describe(NAMESPACE))
    said = cluster.kubectl("logs", name, f"--namespace={NAMESPACE}")
    assert ended == "Succeeded", said


def delete(cluster: Cluster, namespace: str, pod: str) -> None:
    """Delete a pod and return at once."""
    cluster.kubectl("delete", "pod", pod, f"--namespace={namespace}", "--wait=false")


def evict(cluster: Cluster, namespace: str, pod: str) -> None:
    """Evict a pod, as a drain of its node does; raises KubectlError where a budget forbids it."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    cluster.kubectl("create", "--raw", path, "--filename=-", input=json.dumps(body))


def _node(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["nodeName"])
