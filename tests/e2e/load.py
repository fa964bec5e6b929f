"""A client in the cluster that submits through the gateway without a pause until it is told to end.

Through the Service's name, as clients in a cluster do: a forwarded port would hang on one pod.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import Cluster, until
from e2e.release import NAMESPACE, Release
from e2e.wave import Flow, flow

PROGRAM = Path(__file__).parent / "programs" / "load.py"
END_SECONDS = 60.0


@dataclass(frozen=True)
class Report:
    """What the client says: the job of each key, and what failed although it repeats requests."""

    accepted: dict[str, str]
    failed: list[str]


@dataclass(frozen=True)
class Load:
    """The client and the record of its jobs."""

    name: str
    flow: Flow

    def until_more(self, count: int = 40) -> None:
        """Wait until so many more of its jobs have succeeded."""
        self.flow.until_succeeded(self.flow.succeeded() + count)

    def end(self) -> Report:
        """Have it end, wait for its last jobs, and return what it says."""
        cluster = self.flow.release.cluster
        cluster.exec(NAMESPACE, self.name, "touch", "/tmp/enough")
        until(lambda: phase(cluster, self.name) == "Succeeded", END_SECONDS, self._log)
        report = Report(**json.loads(self._log().splitlines()[-1]))
        self.flow.until_succeeded(len(report.accepted))
        return report

    def _log(self) -> str:
        return self.flow.release.cluster.kubectl("logs", self.name, f"--namespace={NAMESPACE}")


@contextmanager
def load(release: Release, long: int = 0) -> Iterator[Load]:
    """Start the client; enter once its jobs flow. `long` of them last long, at any time."""
    name = f"load-{uuid.uuid4().hex[:6]}"
    program = PROGRAM.read_text(encoding="utf-8")
    with (
        flow(release, f"load={name}") as flowing,
        caller(release.cluster, name, program, long=long),
    ):
        started = Load(name, flowing)
        started.until_more()
        yield started


@contextmanager
def caller(
    cluster: Cluster, name: str, program: str, *, named: bool = True, long: int = 0
) -> Iterator[None]:
    """Run a Python program in a pod; `named`: the gateway's NetworkPolicy lets it in."""
    who = "yes" if named else "no"
    values = {"program": json.dumps(program), "named": who, "long": str(long)}
    cluster.apply("caller", NAMESPACE, name=name, **values)
    where = f"--namespace={NAMESPACE}"
    try:
        cluster.kubectl("wait", "--for=condition=Ready", f"pod/{name}", where, "--timeout=60s")
        yield
    finally:
        cluster.kubectl("delete", "pod", name, where, "--wait=false")


def phase(cluster: Cluster, pod: str) -> str:
    """Return where a pod is."""
    return str(cluster.get(NAMESPACE, "pod", pod)["status"]["phase"])
