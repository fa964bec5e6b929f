"""Every version of the objects of a collection, in the API server's order, and when it was seen.

Knows nothing of what the objects mean.
"""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any
from urllib.parse import quote

from e2e.cluster import Cluster

Object = dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """One version, and when it came: monotonic seconds of the test. LISTED ones were there."""

    at: float
    kind: str
    object: Object


class Recording:
    """What a watch has shown so far."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.latest: dict[str, Object] = {}
        """The objects there are, by name."""

    def take(self, seen: Seen) -> None:
        """Note one version."""
        name = seen.object["metadata"]["name"]
        self.seen.append(seen)
        if seen.kind == "DELETED":
            self.latest.pop(name, None)
        else:
            self.latest[name] = seen.object


@contextmanager
def recorded(cluster: Cluster, path: str, selector: str = "") -> Iterator[Recording]:
    """Record a collection from now on."""
    chosen = f"{path}?labelSelector={quote(selector)}"
    listed = json.loads(cluster.kubectl("get", "--raw", chosen))
    recording = Recording()
    for item in listed["items"]:
        recording.take(Seen(time.monotonic(), "LISTED", item))
    following = _Following(cluster, chosen, recording)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(following.run, listed["metadata"]["resourceVersion"])
        try:
            yield recording
        finally:
            following.end()
    done.result()


class _Following:
    """A watch that is taken up where it broke off: servers end them as they like."""

    def __init__(self, cluster: Cluster, path: str, recording: Recording) -> None:
        self._cluster = cluster
        self._path = path
        self._recording = recording
        self._ended = threading.Event()
        self._watch: subprocess.Popen[bytes] | None = None

    def run(self, since: str) -> None:
        """Follow until the end; fails if versions were missed."""
        while not self._ended.is_set():
            asked = f"{self._path}&watch=true&resourceVersion={since}"
            with self._cluster.running("get", "--raw", asked) as self._watch:
                if not self._ended.is_set():
                    assert self._watch.stdout
                    since = self._read(self._watch.stdout) or since

    def end(self) -> None:
        """Have it end at once."""
        self._ended.set()
        if self._watch:
            self._watch.kill()

    def _read(self, stream: IO[bytes]) -> str:
        """Take versions until the stream ends; returns the last one, if there was any."""
        last = ""
        while (line := stream.readline()).endswith(b"\n"):
            at = time.monotonic()
            event = json.loads(line)
            assert event["type"] != "ERROR", event
            self._recording.take(Seen(at, event["type"], event["object"]))
            last = event["object"]["metadata"]["resourceVersion"]
        return last
