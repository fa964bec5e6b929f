"""What the API server's own history of versions says of the jobs of a namespace."""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.names import JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane


@dataclass(frozen=True)
class Version:
    """One version of one job."""

    name: str
    kind: str
    phase: str
    admitted: bool
    attempt: int
    key: str
    updated: float
    """When it was written, by the writer's clock, in epoch seconds; 0 for one just created."""


class History:
    """Watches from its beginning; versions are in the order that the API server gave them."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.versions: list[Version] = []
        self._plane = plane
        self._path = collection_path(namespace, JOBS)
        self._connection = http.client.HTTPSConnection(
            urlsplit(plane.url).netloc,
            context=ssl.create_default_context(cafile=plane.ca_file),
            timeout=300,
        )
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        since = self._plane.api.get(self._path)["metadata"]["resourceVersion"]
        query = urlencode({"watch": "true", "resourceVersion": since})
        headers = {"Authorization": f"Bearer {self._plane.admin_token}"}
        self._connection.request("GET", f"{self._path}?{query}", headers=headers)
        self._stream = self._connection.getresponse()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Closing alone would wait for the reader, and the reader for the next version.
        self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._connection.close()

    def most(self, counts: Callable[[Version], bool]) -> int:
        """Return how many jobs at most were, at one time, as told."""
        now: set[str] = set()
        most = 0
        for version in self.versions:
            if version.kind != "DELETED" and counts(version):
                now.add(version.name)
            else:
                now.discard(version.name)
            most = max(most, len(now))
        return most

    def claims(self) -> list[Version]:
        """Return each version that is a claim, in order."""
        attempts: dict[str, int] = {}
        return [version for version in self.versions if self._is_claim(version, attempts)]

    def admissions(self) -> list[Version]:
        """Return each version that admits a job, in order."""
        admitted: set[tuple[str, int]] = set()
        found = []
        for version in self.versions:
            start = (version.name, version.attempt)
            if version.phase == "Queued" and version.admitted and start not in admitted:
                admitted.add(start)
                found.append(version)
        return found

    def _is_claim(self, version: Version, attempts: dict[str, int]) -> bool:
        grown = version.attempt > attempts.get(version.name, 0)
        attempts[version.name] = version.attempt
        return grown

    def _watch(self) -> None:
        for line in self._lines():
            event = json.loads(line)
            self.versions.append(_version(event["type"], event["object"]))

    def _lines(self) -> Iterator[bytes]:
        while line := self._stream.readline():
            yield line


def _version(kind: str, job: Any) -> Version:
    status, spec = job["status"], job["spec"]
    updated = status.get("lastUpdateTime")
    return Version(
        name=job["metadata"]["name"],
        kind=kind,
        phase=status["phase"],
        admitted=status.get("admitted", False),
        attempt=status.get("attempt", 0),
        key=spec.get("concurrencyKey", ""),
        updated=parse_timestamp(updated).timestamp() if updated else 0.0,
    )
