"""A collection kept in sight: a list, then a watch, again and again until cancelled."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from asyncjob.errors import ApiError, ExpiredError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.pace import loop_pace
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import Params
from asyncjob.kube.watch import WatchEvent, watch

log = structlog.get_logger()


class Follower(Protocol):
    """Takes what is seen of a small collection."""

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the whole collection anew."""

    def apply(self, event: WatchEvent) -> None:
        """Take one change: ADDED, MODIFIED or DELETED."""


async def follow(
    session: KubeSession,
    path: str,
    follower: Follower,
    params: Params | None = None,
    *,
    on_watch: Callable[[], None] = lambda: None,
) -> None:
    """Keep the follower up to date until cancelled; outages are waited out, 1 to 60 s apart.

    `on_watch` is called at the beginning of each watch.
    """
    sight = _Sight(session, path, follower, params or {}, on_watch)
    pace = loop_pace()
    while True:
        pace.begin()
        error = await sight.watch_on()
        pause = pace.pause(failed=error is not None)
        if error is not None:
            log.warning("watch interrupted", path=path, error=str(error), retry_in=round(pause, 1))
        await asyncio.sleep(pause)


class _Sight:
    """Where the watch of one collection stands."""

    def __init__(
        self,
        session: KubeSession,
        path: str,
        follower: Follower,
        params: Params,
        on_watch: Callable[[], None],
    ) -> None:
        self._session = session
        self._path = path
        self._follower = follower
        self._params = params
        self._on_watch = on_watch
        self._version: str | None = None

    async def watch_on(self) -> ApiError | None:
        """Watch until the server ends it, listing first where need be; returns what went wrong."""
        try:
            if self._version is None:
                self._version = await self._list()
            await self._watch(self._version)
        except ExpiredError:
            self._version = None
        except ApiError as error:
            self._version = None
            return error
        return None

    async def _list(self) -> str:
        page = await self._session.get(self._path, self._params)
        self._follower.replace([as_object(item) for item in items(page, "items")])
        return text(child(page, "metadata"), "resourceVersion")

    async def _watch(self, version: str) -> None:
        params = {**self._params, "resourceVersion": version}
        async for event in watch(self._session, self._path, params, on_open=self._on_watch):
            self._version = event.resource_version or self._version
            if event.type != "BOOKMARK":
                self._follower.apply(event)
