"""The watch of jobs: every event in its order, from a list on and through whatever breaks it.

Not kopf's own, of whose work per event jobs need nothing (ADR 13).
"""

from collections.abc import Awaitable, Callable

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.watch import watch
from asyncjob.names import JOBS, collection_path

JobEventHandler = Callable[[str, JsonObject], None]
"""Takes the type of an event (ADDED, MODIFIED, DELETED) and the object."""

WatchProgress = Callable[[str | None], None]
"""Takes the namespace whose watch has shown that it goes on, were it by a bookmark."""

Resync = Callable[[str | None], Awaitable[str]]
"""Repairs what is known of a namespace, or of all, and returns the version that is good for."""


class JobWatch:
    """Where the watch of each namespace stands, or the one of all."""

    def __init__(
        self,
        session: KubeSession,
        on_event: JobEventHandler,
        resync: Resync,
        on_progress: WatchProgress,
    ) -> None:
        self._session = session
        self._on_event = on_event
        self._on_progress = on_progress
        self._resync = resync
        self._versions: dict[str | None, str] = {}

    def resume_from(self, namespace: str | None, version: str) -> None:
        """Take that all is known up to a version, so that a watch may go on from there."""
        self._versions[namespace] = version

    async def run(self, namespace: str | None) -> None:
        """Watch until cancelled or broken; raises what a request raises, ExpiredError included.

        After a break it compares first, as no watch tells of what was deleted meanwhile.
        """
        while True:
            version = self._versions.pop(namespace, "") or await self._resync(namespace)
            self._versions[namespace] = await self._watch_until_closed(namespace, version)

    async def _watch_until_closed(self, namespace: str | None, version: str) -> str:
        """Watch until the server ends it, as it does every few minutes; return how far it got."""
        params = {"resourceVersion": version}
        async for event in watch(self._session, collection_path(namespace, JOBS), params):
            version = event.resource_version or version
            self._on_progress(namespace)
            if event.type != "BOOKMARK":
                self._on_event(event.type, event.object)
        return version
