"""Keeps this worker's own Lease: announced at the start, renewed, and emptied at the end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
)
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import Backoff
from asyncjob_worker.announcement import Announcement, lease_path
from asyncjob_worker.errors import CannotStartError

log = structlog.get_logger()

END_SECONDS = 3.0
"""An API server that is away does not hold up the end of the process for longer."""


class Announcer:
    """Announces one worker process."""

    def __init__(
        self,
        session: KubeSession,
        announcement: Announcement,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._announcement = announcement
        self._path = lease_path(session.access.namespace, announcement.holder.pod)
        self._pause = pause

    async def begin(self) -> None:
        """Announce for the first time; an API server that is away is waited for.

        Raises CannotStartError where waiting is of no use.
        """
        backoff = Backoff()
        while True:
            try:
                return await self._write()
            except (ForbiddenError, UnauthorizedError, NotFoundError) as error:
                raise CannotStartError(self._explain(error)) from error
            except ApiError as error:
                pause = backoff.pause()
                wait = round(pause, 1)
                log.warning("waiting for the API server", error=str(error), retry_in=wait)
                await self._pause(pause)

    async def keep_on(self, on_round: Callable[[], None]) -> None:
        """Renew until cancelled, and call `on_round` before each time."""
        while True:
            await self._pause(self._announcement.interval)
            on_round()
            await self._try("worker lease not renewed")

    async def drain(self) -> None:
        """Say that this worker claims nothing more, so that its share is dealt anew at once."""
        self._announcement = replace(self._announcement, draining=True)
        await self._try("draining not announced")

    async def end(self) -> None:
        """Say that this worker is gone."""
        body: JsonObject = {"spec": {"holderIdentity": ""}}
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._session.merge_patch(self._path, body)
        except NotFoundError:
            return
        except (ApiError, TimeoutError) as error:
            log.warning("worker lease not emptied", error=str(error) or "no answer in time")

    async def _try(self, complaint: str) -> None:
        try:
            await self._write()
        except ApiError as error:
            log.warning(complaint, error=str(error))

    async def _write(self) -> None:
        body = self._announcement.body()
        try:
            await self._session.merge_patch(self._path, body)
        except NotFoundError:
            try:
                await self._session.create(self._path.rpartition("/")[0], body)
            except AlreadyExistsError:
                await self._session.merge_patch(self._path, body)

    def _explain(self, error: ApiError) -> str:
        if isinstance(error, NotFoundError):
            return f"namespace {self._session.access.namespace!r} does not exist: {error}"
        if isinstance(error, UnauthorizedError):
            return f"the API server does not accept this pod's token: {error}"
        return f"this identity may not write its worker Lease, check the worker's RBAC: {error}"
