"""Arrays in a worker's namespace: created, asked for something, and watched until they are so."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from asyncjob.lifecycle.arrays.item_ranges import ItemRanges
from asyncjob.names import ARRAY_LABEL, ARRAYS, JOBS, array_path, collection_path
from asyncjob_dev.api import Object
from asyncjob_dev.supervisor import DevWorker
from support.objects.builders import array
from support.processes.workers import WorkerNamespace, until


class Arrays:
    """The arrays of one namespace."""

    def __init__(self, ns: WorkerNamespace) -> None:
        self.ns = ns

    def worker(
        self,
        name: str = "worker-0",
        *options: str,
        app: str = "support.apps.items:app",
        restart: bool = False,
    ) -> DevWorker:
        """Start a worker and wait until it works, on a busy machine for long."""
        started = self.ns.start_worker(name, *options, app=app, restart=restart)
        self.ns.until_log(started, "worker started", within=60.0)
        return started

    def create(self, name: str, type_: str, count: int, **spec: Any) -> Object:
        """Create an array of numbers."""
        body = array(name, **{"type": type_, "items": {"count": count}, **spec})
        return self.ns.api.create(collection_path(self.ns.namespace, ARRAYS), body)

    def ask(self, name: str, **spec: Any) -> None:
        """Change control fields."""
        self.ns.api.merge(array_path(self.ns.namespace, name), {"spec": spec})

    def delete(self, name: str) -> None:
        """Delete an array."""
        self.ns.api.delete(array_path(self.ns.namespace, name))

    def status(self, name: str) -> Object:
        """Return the status."""
        status: Object = self.ns.api.get(array_path(self.ns.namespace, name))["status"]
        return status

    def until(self, name: str, probe: Callable[[Object], Any], within: float = 60.0) -> Object:
        """Return the status once the probe holds for it."""

        def look() -> Object | None:
            status = self.status(name)
            return status if probe(status) else None

        return until(look, within, lambda: f"{self.status(name)}\n{self.chunks()}")

    def until_phase(self, name: str, phase: str, within: float = 60.0) -> Object:
        """Return the status once the array is in the phase."""
        return self.until(name, lambda status: status["phase"] == phase, within)

    def chunks(self) -> list[Object]:
        """Return the chunks that there are."""
        path = f"{collection_path(self.ns.namespace, JOBS)}?labelSelector={ARRAY_LABEL}"
        found: list[Object] = self.ns.api.get(path)["items"]
        return found

    def until_no_chunks(self, within: float = 20.0) -> None:
        """Wait until all chunks are deleted."""
        until(lambda: not self.chunks(), within, lambda: str(self.chunks()))

    def runs(self, name: str) -> Counter[int]:
        """Return how often each item was run to its end."""
        lines = [line.split() for line in self.ns.trace(f"done {name} ")]
        return Counter(int(line[2]) for line in lines)

    def until_begun(self, name: str) -> None:
        """Wait until an item has begun to run."""
        until(lambda: self.ns.trace(f"begin {name} "), 60.0, lambda: str(self.chunks()))

    def until_some_run(self, name: str, count: int, within: float = 90.0) -> None:
        """Wait until so many items have been run."""
        until(lambda: len(self.runs(name)) >= count, within, lambda: f"{len(self.runs(name))} run")


def all_of(status: Object) -> tuple[int, int, str]:
    """Return how many items are done, how many have failed, and which."""
    return status["succeeded"], status["failed"], status.get("failedItems", "")


def numbers(notation: str) -> set[int]:
    """Return the items that interval notation names."""
    return set(ItemRanges.parse(notation))


def pause() -> None:
    """Let a second pass in which nothing is to happen."""
    time.sleep(1.0)
