"""Tells running handlers that their job is to be cancelled."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet

from asyncjob.app.stop import Stop
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.phases import Phase
from asyncjob_worker.held import HeldJob


class CancelWatcher:
    """Sees running jobs of the queue whose `spec.cancel` is set; stops those that run here.

    It remembers them all, because the wish may be seen before the answer to our own claim.
    """

    def __init__(self, running: Collection[HeldJob]) -> None:
        self._running = running
        self._requested: set[str] = set()

    def is_cancel_requested(self, uid: str) -> bool:
        """Return whether the running job is to be cancelled."""
        return uid in self._requested

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the list."""
        self._requested = {_uid(obj) for obj in objects}
        self._stop(self._requested)

    def apply(self, event: WatchEvent) -> None:
        """Take a change."""
        uid = _uid(event.object)
        if event.type == "DELETED":
            self._requested.discard(uid)
        else:
            self._requested.add(uid)
            self._stop({uid})

    def _stop(self, uids: AbstractSet[str]) -> None:
        for held in self._running:
            if held.job.uid in uids:
                held.stop(Stop.CANCELLED)


def cancel_watch_params(queue: str) -> dict[str, str]:
    """Return the query that selects running jobs of a queue that are to be cancelled."""
    phase = f"status.phase={Phase.RUNNING}"
    return {"fieldSelector": f"{phase},spec.queue={queue},spec.cancel=true"}


def _uid(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "uid")
