"""The live workers of a queue, as their Leases show them.

A worker counts as live while its Lease keeps changing, by this process's own clock.
"""

from collections.abc import Callable, Sequence

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import WatchEvent
from asyncjob.lifecycle.claim import Holder
from asyncjob.names import QUEUE_LABEL
from asyncjob_worker.announcement import LIVE_INTERVALS, claimant


class Roster:
    """Who else works on the queue; `on_change` is called when that changes."""

    def __init__(
        self, me: Holder, interval: float, clock: Callable[[], float], on_change: Callable[[], None]
    ) -> None:
        self._me = me
        self._interval = interval
        self._clock = clock
        self._on_change = on_change
        self._seen: dict[str, tuple[str, str, float]] = {}
        self._live: frozenset[str] = frozenset({me.worker})
        self.synced = False

    @property
    def live(self) -> frozenset[str]:
        """Identities of the live workers, this one included."""
        return self._live

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the list of Leases."""
        names = {_name(lease) for lease in objects}
        self._seen = {name: seen for name, seen in self._seen.items() if name in names}
        for lease in objects:
            self._note(lease)
        first, self.synced = not self.synced, True
        self.refresh(first=first)

    def apply(self, event: WatchEvent) -> None:
        """Take a change of one Lease."""
        if event.type == "DELETED":
            self._seen.pop(_name(event.object), None)
        else:
            self._note(event.object)
        self.refresh()

    def tick(self) -> None:
        """Look at the time; without permission to see others, go on alone after one interval."""
        first, self.synced = not self.synced, True
        self.refresh(first=first)

    def refresh(self, *, first: bool = False) -> None:
        """Forget who has been silent for too long."""
        oldest = self._clock() - self._interval * LIVE_INTERVALS
        live = {worker for worker, _, seen_at in self._seen.values() if worker and seen_at > oldest}
        live.add(self._me.worker)
        if live != self._live or first:
            self._live = frozenset(live)
            self._on_change()

    def _note(self, lease: JsonObject) -> None:
        worker, renewed = claimant(lease), text(child(lease, "spec"), "renewTime")
        known = self._seen.get(_name(lease))
        if known is None or known[:2] != (worker, renewed):
            self._seen[_name(lease)] = (worker, renewed, self._clock())


def roster_params(queue: str) -> dict[str, str]:
    """Return the query that selects the Leases of a queue's workers."""
    return {"labelSelector": f"{QUEUE_LABEL}={queue}"}


def _name(lease: JsonObject) -> str:
    return text(child(lease, "metadata"), "name")
