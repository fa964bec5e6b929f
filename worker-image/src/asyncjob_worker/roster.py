"""The live workers of a queue: this one announced by a Lease of its own, the others seen by theirs.

A worker counts as live while its Lease keeps changing, by this process's own clock.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from asyncjob.errors import AlreadyExistsError, ApiError, NotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.lifecycle.claim import Holder
from asyncjob.names import QUEUE_LABEL
from asyncjob_worker.announcement import LIVE_INTERVALS, Announcement, lease_path

log = structlog.get_logger()


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

    @property
    def live(self) -> frozenset[str]:
        """Identities of the live workers, this one included."""
        return self._live

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the list of Leases."""
        self._seen = {name: seen for name, seen in self._seen.items() if name in _names(objects)}
        for lease in objects:
            self._note(lease)
        self.refresh()

    def apply(self, event: WatchEvent) -> None:
        """Take a change of one Lease."""
        if event.type == "DELETED":
            self._seen.pop(_name(event.object), None)
        else:
            self._note(event.object)
        self.refresh()

    def refresh(self) -> None:
        """Forget who has been silent for too long."""
        oldest = self._clock() - self._interval * LIVE_INTERVALS
        live = {worker for worker, _, seen_at in self._seen.values() if worker and seen_at > oldest}
        live.add(self._me.worker)
        if live != self._live:
            self._live = frozenset(live)
            self._on_change()

    def _note(self, lease: JsonObject) -> None:
        spec = child(lease, "spec")
        worker, renewed = text(spec, "holderIdentity"), text(spec, "renewTime")
        known = self._seen.get(_name(lease))
        if known is None or known[:2] != (worker, renewed):
            self._seen[_name(lease)] = (worker, renewed, self._clock())


async def announce(session: KubeSession, namespace: str, announcement: Announcement) -> None:
    """Write this worker's Lease: its first announcement, or the first since it was removed."""
    path = lease_path(namespace, announcement.holder.pod)
    try:
        await session.merge_patch(path, announcement.body())
    except NotFoundError:
        try:
            await session.create(path.rpartition("/")[0], announcement.body())
        except AlreadyExistsError:
            await session.merge_patch(path, announcement.body())


async def keep_announcing(
    session: KubeSession, namespace: str, announcement: Announcement, roster: Roster
) -> None:
    """Renew this worker's Lease until cancelled, and notice who renews theirs no longer."""
    while True:
        await asyncio.sleep(announcement.interval)
        roster.refresh()
        try:
            await announce(session, namespace, announcement)
        except ApiError as error:
            log.warning("worker lease not renewed", error=str(error))


async def withdraw(session: KubeSession, namespace: str, announcement: Announcement) -> None:
    """Say that this worker is gone, so that its share is dealt anew at once."""
    body: JsonObject = {"spec": {"holderIdentity": ""}}
    try:
        await session.merge_patch(lease_path(namespace, announcement.holder.pod), body)
    except ApiError as error:
        log.warning("worker lease not withdrawn", error=str(error))


def roster_params(queue: str) -> dict[str, str]:
    """Return the query that selects the Leases of a queue's workers."""
    return {"labelSelector": f"{QUEUE_LABEL}={queue}"}


def _name(lease: JsonObject) -> str:
    return text(child(lease, "metadata"), "name")


def _names(leases: Sequence[JsonObject]) -> set[str]:
    return {_name(lease) for lease in leases}
