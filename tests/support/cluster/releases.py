"""What earlier versions left: their chart, and the writes of their worker and operator."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from asyncjob.names import JOBS, collection_path, job_path
from asyncjob_dev.release.writes import (
    OPERATOR,
    POD_UID,
    RESOURCE_VERSION,
    WORKER,
    write,
    write_time,
)
from support.cluster.api import Answer, Client
from support.cluster.identities import Worker

ROOT = Path(__file__).parents[3]
Object = dict[str, Any]


@dataclass(frozen=True)
class Release:
    """One of the versions stored."""

    folder: Path

    @property
    def version(self) -> str:
        return self.folder.name

    @property
    def chart(self) -> Path:
        return self.folder / "chart"

    @cached_property
    def lives(self) -> list[Object]:
        """Return the recorded lives."""
        lives: list[Object] = json.loads((self.folder / "writes.json").read_text())["lives"]
        return lives


FOLDERS = sorted(one for one in (ROOT / "tests/releases").iterdir() if one.is_dir())
RELEASES = [Release(folder) for folder in FOLDERS]


@dataclass(frozen=True)
class Replay:
    """One recorded life on a real API server, in part by the code of today."""

    name: str
    life: Object
    namespace: str
    admin: Client
    worker: Worker
    today: frozenset[str] = frozenset()
    """Who writes by the code of today: WORKER, OPERATOR."""

    @property
    def path(self) -> str:
        return job_path(self.namespace, self.name)

    def create(self) -> None:
        """Create the job."""
        body = {
            "apiVersion": "asyncjob.dev/v1alpha1",
            "kind": "AsyncJob",
            "metadata": {"name": self.name},
            "spec": {"type": "echo", **self.life["spec"]},
        }
        self.admin.create(collection_path(self.namespace, JOBS), body).object()

    def play(self, begin: int, end: int | None = None, by: frozenset[str] = frozenset()) -> None:
        """Make the writes from `begin` up to `end`; each leads to the phase it led to before.

        But for a first crash that today's operator writes: it leads past the promotion (ADR 42).
        """
        for number, kept in list(enumerate(self.life["writes"]))[begin:end]:
            phase, is_today = kept["phase"], kept["by"] in by
            if is_today and kept["act"] == "promote" and self._phase() == phase:
                continue
            answer = self.make(number, kept, by)
            assert answer.accepted, (self.name, kept["by"], kept["act"], answer.message)
            if is_today and kept["act"] == "crash":
                phase = "Queued"
            assert answer.body["status"]["phase"] == phase, (self.name, kept["act"])

    def _phase(self) -> str:
        return str(self.admin.get(self.path).object()["status"]["phase"])

    def make(self, number: int, kept: Object, by: frozenset[str] = frozenset()) -> Answer:
        """Make one write, in the name of who made it."""
        job = self.admin.get(self.path).object()
        client = self.worker.client if kept["by"] == WORKER else self.admin
        if kept["by"] in by:
            made = write(kept["act"], job, pod_uid=self.worker.pod_uid, now=write_time(number))
            body = made.body
        else:
            body = _filled(kept, job, self.worker)
        path = f"{self.path}/status" if kept["subresource"] else self.path
        return client.merge(path, body) if isinstance(body, dict) else client.patch(path, body)


def _filled(kept: Object, job: Object, worker: Worker) -> Any:
    """Return the body with what the server gives; the history goes on from what is there."""
    version = job["metadata"]["resourceVersion"]
    text = json.dumps(kept["body"]).replace(RESOURCE_VERSION, version)
    body = json.loads(text.replace(POD_UID, worker.pod_uid))
    if kept["by"] == OPERATOR and "history" in body["status"]:
        there = job["status"].get("history", [])
        body["status"]["history"] = [*there, body["status"]["history"][-1]][-20:]
    return body


def cut_points(release: Release) -> Iterator[tuple[Object, int]]:
    """Yield each life with each number of writes after which something may happen to it."""
    for life in release.lives:
        for played in range(len(life["writes"])):
            yield life, played
