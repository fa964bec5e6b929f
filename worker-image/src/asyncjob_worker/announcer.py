"""Keeps this worker's own Lease: announced at the start, renewed, and emptied at the end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    ObjectNotFoundError,
    UnauthorizedError,
)
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import ExponentialBackoff
from asyncjob_worker.announcement import WorkerLease, lease_path
from asyncjob_worker.errors import CannotStartError

log = structlog.get_logger()

DEREGISTER_SECONDS = 3.0
"""An API server that is away does not hold up the end of the process for longer."""


class WorkerRegistration:
    """Announces one worker process."""

    def __init__(
        self,
        session: KubeSession,
        lease: WorkerLease,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._lease = lease
        self._path = lease_path(session.access.namespace, lease.holder.pod)
        self._pause = pause

    async def register(self) -> None:
        """Announce for the first time; an API server that is away is waited for.

        Raises CannotStartError where waiting is of no use.
        """
        backoff = ExponentialBackoff()
        while True:
            try:
                return await self._write()
            except (ForbiddenError, UnauthorizedError, ObjectNotFoundError) as error:
                raise CannotStartError(self._explain(error)) from error
            except ApiError as error:
                pause = backoff.next_delay()
                wait = round(pause, 1)
                log.warning("waiting for the API server", error=str(error), retry_in=wait)
                await self._pause(pause)

    async def renew_periodically(self, before_renewal: Callable[[], None]) -> None:
        """Renew until cancelled, and call `before_renewal` before each time."""
        while True:
            await self._pause(self._lease.interval)
            before_renewal()
            await self._try_write("worker lease not renewed")

    async def mark_draining(self) -> None:
        """Say that this worker claims nothing more, so that its share is dealt anew at once."""
        self._lease = replace(self._lease, draining=True)
        await self._try_write("draining not announced")

    async def deregister(self) -> None:
        """Say that this worker is gone."""
        body: JsonObject = {"spec": {"holderIdentity": ""}}
        try:
            async with asyncio.timeout(DEREGISTER_SECONDS):
                await self._session.merge_patch(self._path, body)
        except ObjectNotFoundError:
            return
        except (ApiError, TimeoutError) as error:
            log.warning("worker lease not emptied", error=str(error) or "no answer in time")

    async def _try_write(self, message: str) -> None:
        try:
            await self._write()
        except ApiError as error:
            log.warning(message, error=str(error))

    async def _write(self) -> None:
        body = self._lease.manifest()
        try:
            await self._session.merge_patch(self._path, body)
        except ObjectNotFoundError:
            try:
                await self._session.create(self._path.rpartition("/")[0], body)
            except AlreadyExistsError:
                await self._session.merge_patch(self._path, body)

    def _explain(self, error: ApiError) -> str:
        if isinstance(error, ObjectNotFoundError):
            return f"namespace {self._session.access.namespace!r} does not exist: {error}"
        if isinstance(error, UnauthorizedError):
            return f"the API server does not accept this pod's token: {error}"
        return f"this identity may not write its worker Lease, check the worker's RBAC: {error}"
