"""The chart as it is installed for the whole run, and its pods by their parts."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asyncjob_dev.environment.settings import ROOT
from e2e.cluster import MANIFESTS, Cluster, until

Object = dict[str, Any]

NAMESPACE = "asyncjob-e2e"
RELEASE = "asyncjob"
CHART = Path(os.environ.get("ASYNCJOB_E2E_CHART") or ROOT / "charts" / "asyncjob")
"""The tree's, or one that is packaged."""
VALUES = MANIFESTS.parent / "values.yaml"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"
JOBS = f"/apis/asyncjob.dev/v1alpha1/namespaces/{NAMESPACE}/asyncjobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
PARTS = ("operator", "gateway", "worker-default", "worker-reports")
IMAGES = {"operator": "operator", "gateway": "operator", "workerDefaults": "worker"}
"""Which of the images each part of the values takes."""


class Release:
    """Installed under its usual name in a namespace that enforces Pod Security `restricted`."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.first_success_seconds = 0.0
        """From the beginning of `helm install` to a job that has succeeded."""
        self.whole_since = 0.0
        """Monotonic seconds when every pod was last known to be ready."""

    # ---- its life

    def begin(self) -> None:
        """Install it, apply manifests at once, and wait for the first job."""
        self.cluster.kubectl("create", "namespace", NAMESPACE)
        self.cluster.kubectl("label", "namespace", NAMESPACE, RESTRICTED)
        began = time.monotonic()
        self.helm("install", RELEASE, str(CHART), *self._values())
        self.cluster.apply("first", NAMESPACE)
        until(lambda: self.phase("first") == "Succeeded", 90.0, self.describe)
        self.first_success_seconds = time.monotonic() - began

    def upgrade(self, *values: str) -> None:
        """Upgrade it with further values; returns when the chart's check has passed."""
        self.helm("upgrade", RELEASE, str(CHART), *self._values(), *values)

    def helm(self, verb: str, *arguments: str) -> str:
        """Run helm on the release's namespace."""
        return self.cluster.helm(verb, *arguments, f"--namespace={NAMESPACE}")

    def end(self) -> None:
        """Take away what is left of it; CRDs, policies and cluster roles go by Helm alone."""
        self.helm("uninstall", RELEASE, "--ignore-not-found")
        self.cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def until_whole(self) -> None:
        """Wait until every Deployment has all its pods, ready, and no other is on its way out."""
        for part in PARTS:
            self.cluster.until_available(NAMESPACE, f"{RELEASE}-{part}")
        until(lambda: all(map(is_ready, self._all_pods())), 60.0, self.describe)
        self.whole_since = time.monotonic()

    # ---- its pods

    def pods(self, part: str) -> list[Object]:
        """Return the pods of a part that are not on their way out, by name."""
        selector = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={part}"
        found = self.cluster.items(NAMESPACE, "pods", selector)
        lasting = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(lasting, key=lambda pod: str(pod["metadata"]["name"]))

    def uids(self) -> set[str]:
        """Return the UIDs of all lasting pods."""
        return {str(pod["metadata"]["uid"]) for part in PARTS for pod in self.pods(part)}

    def leader(self) -> str:
        """Return the identity of the operator that leads; it begins with its pod's name."""
        lease = self.cluster.get(NAMESPACE, "lease", "asyncjob-operator")
        return str(lease["spec"].get("holderIdentity", ""))

    def leading(self) -> str:
        """Return the name of the pod that leads."""
        return self.leader().rpartition("_")[0]

    # ---- its jobs

    def phase(self, job: str) -> str:
        """Return where a job is."""
        return str(self.cluster.get(NAMESPACE, "asyncjob", job)["status"]["phase"])

    def jobs(self, selector: str = "") -> dict[str, Object]:
        """Return jobs by name."""
        found = self.cluster.items(NAMESPACE, "asyncjobs", selector)
        return {str(job["metadata"]["name"]): job for job in found}

    # ---- reaching it

    @contextmanager
    def gateway(self) -> Iterator[str]:
        """Forward a port to the gateway's Service and return its URL."""
        with self.cluster.running(
            "port-forward", f"service/{RELEASE}-gateway", ":80", f"--namespace={NAMESPACE}"
        ) as forwarding:
            assert forwarding.stdout
            line = forwarding.stdout.readline().decode()
            assert line.startswith("Forwarding from 127.0.0.1:"), line
            port = line.split("127.0.0.1:")[1].split()[0]
            yield f"http://127.0.0.1:{port}"

    def token(self, account: str) -> str:
        """Return a token of a ServiceAccount."""
        return self.cluster.kubectl("create", "token", account, f"--namespace={NAMESPACE}").strip()

    def describe(self) -> str:
        """Return pods and events, for messages."""
        return self.cluster.describe(NAMESPACE)

    def _all_pods(self) -> list[Object]:
        selector = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component in (%s)"
        return self.cluster.items(NAMESPACE, "pods", selector % ",".join(PARTS))

    def _values(self) -> list[str]:
        given = [f"--values={VALUES}"]
        for part, image in IMAGES.items():
            path, _, tag = self.cluster.images[image].rpartition(":")
            registry, _, repository = path.rpartition("/")
            own = {"registry": registry, "repository": repository, "tag": tag}
            given += [f"--set-string={part}.image.{key}={value}" for key, value in own.items()]
        return given


def is_ready(pod: Object) -> bool:
    """Return whether a pod lasts and is ready."""
    conditions = pod["status"].get("conditions", ())
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def container_of(pod: Object, name: str) -> Object:
    """Return the status of a container of a pod."""
    states: list[Object] = pod["status"]["containerStatuses"]
    return next(state for state in states if state["name"] == name)


def as_json(objects: list[Object]) -> str:
    """Return a List of objects for kubectl."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
