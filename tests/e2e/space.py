"""The queue that a test has for itself, with the one worker that serves it."""

import json
from collections.abc import Callable
from typing import Any

from e2e.cluster import Cluster, until

Object = dict[str, Any]

QUEUE = "reports"
WORKERS = "app.kubernetes.io/component=worker-reports"
WORKER = "asyncjob-worker-reports"


class Space:
    """A queue of the release, whose namespace is `name`; its one worker stands alone."""

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
            "spec": {"type": type, "queue": QUEUE, "payload": payload, **spec},
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

    def clear(self) -> None:
        """Delete all jobs of the queue, running ones too."""
        mine = f"--field-selector=spec.queue={QUEUE}"
        self.cluster.kubectl("delete", "asyncjobs", mine, f"--namespace={self.name}")

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
