"""Jobs driven by hand in a namespace of their own, with the admin's rights."""

import itertools
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from asyncjob.lifecycle.timestamps import format_timestamp, parse_timestamp
from asyncjob.names import (
    JOBS,
    QUEUES,
    collection_path,
    job_path,
)
from asyncjob_dev.api import Api, Object

T = TypeVar("T")
NUMBERS = itertools.count(1)
POD_ACCOUNT = "pods"


def until(
    probe: Callable[[], T | None], within: float, what: str = "it", *, every: float = 0.05
) -> T:
    """Return the first true answer of the probe."""
    give_up_at = time.monotonic() + within
    while not (answer := probe()):
        assert time.monotonic() < give_up_at, f"{what} did not come within {within} s"
        time.sleep(every)
    return answer


def now(seconds: float = 0.0) -> str:
    """Return the time so many seconds from now, as it is stored."""
    return format_timestamp(datetime.now(UTC) + timedelta(seconds=seconds))


class Jobs:
    """The jobs of one namespace of its own, with the admin's rights."""

    def __init__(self, api: Api, namespace: str | None = None) -> None:
        self.api = api
        self.namespace = namespace or f"ops-{next(NUMBERS)}-{uuid.uuid4().hex[:6]}"
        if namespace is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
            api.create("/api/v1/namespaces", body)
            # Pods need an account, and "default" comes whenever the controller gets to it.
            accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
            api.create(accounts, {"metadata": {"name": POD_ACCOUNT}})

    def create(self, name: str, **spec: Any) -> Object:
        """Create a job."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": name},
            "spec": {"type": "test", **spec},
        }
        return self.api.create(collection_path(self.namespace, JOBS), body)

    def queue(self, name: str, **spec: Any) -> Object:
        """Create an AsyncQueue."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncQueue",
            "metadata": {"name": name},
            "spec": spec,
        }
        return self.api.create(collection_path(self.namespace, QUEUES), body)

    def get(self, name: str) -> Object:
        """Return the job."""
        return self.api.get(job_path(self.namespace, name))

    def status(self, name: str) -> Object:
        """Return the job's status."""
        status: Object = self.get(name)["status"]
        return status

    def exists(self, name: str) -> bool:
        """Return whether there is such a job."""
        return self.api.answers(job_path(self.namespace, name))

    def change_spec(self, name: str, **controls: Any) -> None:
        """Change what a user may change."""
        self.api.merge(job_path(self.namespace, name), {"spec": controls})

    def until_phase(self, name: str, phase: str, within: float = 10.0) -> Object:
        """Return the status once the job is in the phase."""

        def probe() -> Object | None:
            status = self.status(name)
            return status if status["phase"] == phase else None

        return until(probe, within, f"{name} in {phase} (is {self.status(name)})")

    def until_reason(self, name: str, reason: str, within: float = 10.0) -> Object:
        """Return the status once it has the reason."""

        def probe() -> Object | None:
            status = self.status(name)
            return status if status.get("reason") == reason else None

        return until(probe, within, f"{name} for {reason} (is {self.status(name)})")

    def until_phase_after(
        self, name: str, phase: str, seconds: float, *, since: str, within: float
    ) -> Object:
        """Return the status once the job is in the phase, not earlier than so long after `since`.

        Judged by the time in the status: a busy machine may look late, but stores no earlier one.
        """
        status = self.until_phase(name, phase, within)
        changed = parse_timestamp(status["lastTransitionTime"])
        assert changed is not None
        assert changed - datetime.fromisoformat(since) >= timedelta(seconds=seconds)
        return status

    def stays(self, name: str, phase: str, seconds: float) -> None:
        """Check that the job does not leave the phase for so long."""
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at:
            assert self.status(name)["phase"] == phase
            time.sleep(0.1)

    def events(self, name: str) -> list[Object]:
        """Return the Events about a job."""
        answer = self.api.get(
            f"/api/v1/namespaces/{self.namespace}/events",
            fieldSelector=f"involvedObject.name={name}",
        )
        events: list[Object] = answer["items"]
        return events
