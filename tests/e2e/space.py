"""A namespace of a test: its jobs, its workers, and the faults they are put to."""

import json
from collections.abc import Callable
from typing import Any

from e2e.cluster import Cluster, until

Object = dict[str, Any]

WORKER = "worker"
WORKERS = "asyncjob.dev/component=worker"


class Space:
    """A namespace under Pod Security `restricted`, with a Deployment of one worker."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    # ---- jobs

    def create(self, name: str, type: str, payload: Any, **spec: Any) -> None:  # noqa: A002
        """Apply a job as a user does."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name, "namespace": self.name},
            "spec": {"type": type, "payload": payload, **spec},
        }
        self.cluster.kubectl("apply", "--filename=-", input=json.dumps(body))

    def status(self, name: str) -> Object:
        """Return a job's status."""
        status: Object = self.cluster.get(self.name, "asyncjob", name)["status"]
        return status

    def until_status(
        self, name: str, probe: Callable[[Object], Any], within: float = 30.0
    ) -> Object:
        """Return the job's status once the probe holds for it."""

        def look() -> Object | None:
            status = self.status(name)
            return status if probe(status) else None

        return until(look, within, lambda: f"{name} is {self.status(name)}\n{self.logs()}")

    def until_phase(self, name: str, phase: str, within: float = 30.0) -> Object:
        """Return the job's status once it is in the phase."""
        return self.until_status(name, lambda status: status["phase"] == phase, within)

    # ---- pods

    def worker(self) -> Object:
        """Return the one worker pod that is not on its way out."""

        def look() -> Object | None:
            pods = self.cluster.items(self.name, "pods", WORKERS)
            lasting = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            return lasting[0] if len(lasting) == 1 else None

        return until(look, 30.0, lambda: self.cluster.describe(self.name))

    def logs(self) -> str:
        """Return what the worker has logged."""
        return self.cluster.kubectl("logs", f"--namespace={self.name}", f"deployment/{WORKER}")
