"""HTTP sessions for kopf under the operator's own identity."""

import asyncio
from typing import Final

import aiohttp
import kopf

from asyncjob.errors import AsyncJobError
from asyncjob.kube import ClusterAccess

SIGN_IN_RETRY_SECONDS: Final = 1.0


class KopfAuthenticator:
    """HTTP sessions for kopf that sign each request anew, so that no token in them grows old."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._sessions: list[aiohttp.ClientSession] = []

    async def new_session(self) -> kopf.AiohttpSession:
        """Return a new session; from the second on kopf was refused, so the token is read anew."""
        if self._sessions:
            await asyncio.sleep(SIGN_IN_RETRY_SECONDS)
            await self._reload_credentials()
        http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._access.ssl_context),
            middlewares=[self._add_headers],
            proxy=self._access.proxy,
        )
        self._sessions.append(http)
        return kopf.AiohttpSession(
            server=self._access.host,
            aiohttp_session=http,
            default_namespace=self._access.namespace,
        )

    async def close(self) -> None:
        """Close what kopf has left open, as it does when it is cancelled."""
        for session in self._sessions:
            await session.close()

    async def _add_headers(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        request.headers.update(await self._access.headers())
        if self._access.server_hostname:
            request.server_hostname = self._access.server_hostname
        return await handler(request)

    async def _reload_credentials(self) -> None:
        try:
            await self._access.reload()
        except AsyncJobError:
            return  # the old token is as good as none: the next refusal comes back here
