"""HTTP sessions for kopf: signed anew for each request, and made of text that kopf can read.

kopf parses with Python's own parser, which gives up at a thousand levels, and copies bodies, which
gives up sooner. An AsyncQueue has no free JSON, but the API server takes any depth in the
`managedFields` that whoever may change a queue sends along. Nobody here asks who owns which field.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import aiohttp
import kopf
import orjson
from aiohttp.connector import Connection

from asyncjob.deep_json import loads
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject, as_object, child, items
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
            response_class=ReadableResponse,
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


class ReadableResponse(aiohttp.ClientResponse):
    """An answer without `managedFields`, in which nothing is too deep for kopf."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Begin to read; what is watched is made readable event by event."""
        await super().start(connection)
        if self.url.query.get("watch") == "true":
            self.content = ReadableEvents(self.content)  # type: ignore[assignment]  # stands in
        return self

    async def json(self, **_: object) -> Any:
        """Return the object or list."""
        found = as_object(loads(await self.read()))
        for one in (found, *map(as_object, items(found, "items"))):
            _drop_managed_fields(one)
        return found


class ReadableEvents:
    """Stands in for the stream of a watch: all is the stream's own but what is read in chunks."""

    def __init__(self, stream: aiohttp.StreamReader) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, size: int) -> AsyncGenerator[bytes]:
        """Yield one event after the other, each a line."""
        rest = b""
        async for chunk in self._stream.iter_chunked(size):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line:
                    yield _readable_event(line) + b"\n"


def _readable_event(line: bytes) -> bytes:
    event = as_object(loads(line))
    _drop_managed_fields(child(event, "object"))
    return orjson.dumps(event)


def _drop_managed_fields(obj: JsonObject) -> None:
    meta = obj.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
