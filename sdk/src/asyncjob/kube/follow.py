"""A collection kept in sight: a list, then a watch, again and again until cancelled."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from asyncjob.errors import ApiError, ExpiredError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube.backoff import Backoff
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
    session: KubeSession, path: str, follower: Follower, params: Params | None = None
) -> None:
    """Keep the follower up to date until cancelled; outages are waited out, 1 to 60 s apart."""
    backoff = Backoff()
    version: str | None = None
    while True:
        try:
            if version is None:
                version = await _list(session, path, follower, params)
                backoff.reset()
            version = await _watch(session, path, follower, {**(params or {})}, version)
        except ExpiredError:
            version = None
        except ApiError as error:
            version = None
            pause = backoff.pause()
            log.warning("watch interrupted", path=path, error=str(error), retry_in=round(pause, 1))
            await asyncio.sleep(pause)


async def _list(session: KubeSession, path: str, follower: Follower, params: Params | None) -> str:
    page = await session.get(path, params)
    follower.replace([as_object(item) for item in items(page, "items")])
    return text(child(page, "metadata"), "resourceVersion")


async def _watch(
    session: KubeSession, path: str, follower: Follower, params: Params, version: str
) -> str:
    async for event in watch(session, path, {**params, "resourceVersion": version}):
        version = event.resource_version or version
        if event.type != "BOOKMARK":
            follower.apply(event)
    return version
