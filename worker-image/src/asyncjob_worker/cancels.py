"""Tells running handlers that their job is to be cancelled."""

from collections.abc import Mapping, Sequence

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.held import HeldJob, Stop


class Cancels:
    """Sees running jobs of the queue whose `spec.cancel` is set; stops those that run here."""

    def __init__(self, running: Mapping[str, HeldJob]) -> None:
        self._running = running

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the list."""
        for obj in objects:
            self._stop(obj)

    def apply(self, event: WatchEvent) -> None:
        """Take a change."""
        if event.type != "DELETED":
            self._stop(event.object)

    def _stop(self, obj: JsonObject) -> None:
        held = self._running.get(text(child(obj, "metadata"), "uid"))
        if held and not held.stopped:
            held.stop(Stop.CANCELLED)


def cancel_params(queue: str) -> dict[str, str]:
    """Return the query that selects running jobs of a queue that are to be cancelled."""
    phase = f"status.phase={Phase.RUNNING}"
    return {"fieldSelector": f"{phase},spec.queue={queue},spec.cancel=true"}
