"""An HTTP proxy on loopback between one part and the API server.

It numbers the requests that pass and asks an `Interference` what becomes of each: the part may be
killed just before the API server gets the request, or just after it has answered. Watches are
handed on line by line, and each line may be held back.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import aiohttp
from aiohttp import web

from asyncjob_perturbation.calls import Call, CallCounter, describe, describe_event, may_be_past

_HANDED_ON: Final = ("Authorization", "Content-Type", "Accept", "User-Agent")
_HANDED_BACK: Final = ("Content-Type", "Date", "Retry-After", "Warning", "Audit-Id")
_MAX_BODY: Final = 16 * 2**20
_LINE_BYTES: Final = 16 * 2**20


Events = AsyncIterator[tuple[Call, bytes]]
"""The lines of a watch, each with the call that it counts as."""


class Interference:
    """What happens to the requests of a part, beside that they are answered; by itself nothing."""

    def before(self, call: Call) -> bool:  # noqa: ARG002
        """Return whether the request reaches the API server."""
        return True

    def after(self, call: Call) -> bool:  # noqa: ARG002
        """Return whether the part gets the answer that the API server has given."""
        return True

    async def watch(self, events: Events) -> AsyncIterator[bytes]:
        """Yield the lines that the part sees of a watch."""
        async for _, line in events:
            yield line


@dataclass
class Recording:
    """The requests of a part in the order in which they came."""

    calls: list[Call] = field(default_factory=list)
    events: list[Call] = field(default_factory=list)
    """What its watches have shown it."""

    past: list[Call] = field(default_factory=list)
    """The requests that an API server that lags may answer with the past."""


class Proxy:
    """Stands before the API server of `url`; a context manager."""

    def __init__(self, url: str, trust: ssl.SSLContext) -> None:
        self.interference = Interference()
        self.recording = Recording()
        self._upstream = url
        self._watches: set[asyncio.Transport] = set()
        self._counter = CallCounter()
        self._trust = trust
        self._port = 0

    @property
    def url(self) -> str:
        """Where the part finds it."""
        return f"http://127.0.0.1:{self._port}"

    def begin_later(self) -> None:
        """Take what passes until the scenario begins for the start of the part."""
        self._counter = CallCounter(at_start=True)

    def begin(self) -> None:
        """Forget what has passed: the scenario begins.

        Watches are open by then, and whatever interferes has to stand in them from their beginning.
        """
        self.recording, self._counter = Recording(), CallCounter()

    def move(self, url: str) -> None:
        """Hand what comes from now on to another API server; watches break off.

        Other requests that are under way are answered.
        """
        self._upstream = url
        for transport in self._watches:
            transport.abort()

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trust)
        timeout = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False, read_bufsize=_LINE_BYTES
        )
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A watch has no end of its own: its connection is what ends with the part.
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        what = describe(request.method, request.path, request.query_string, body)
        call = self._counter.next(what)
        self.recording.calls.append(call)
        if may_be_past(request.method, request.query_string):
            self.recording.past.append(call)
        if not self.interference.before(call):
            return web.Response(status=502)
        headers = {name: request.headers[name] for name in _HANDED_ON if name in request.headers}
        headers["Accept-Encoding"] = "identity"
        upstream = self._upstream
        try:
            async with self._session.request(
                request.method,
                upstream + request.raw_path,
                data=body or None,  # with an empty one goes a Content-Type that is refused
                headers=headers,
            ) as answer:
                return await self._hand_back(request, what, call, answer, upstream)
        except aiohttp.ClientError:
            return web.Response(status=502)

    async def _hand_back(
        self,
        request: web.Request,
        what: str,
        call: Call,
        answer: aiohttp.ClientResponse,
        upstream: str,
    ) -> web.StreamResponse:
        headers = {name: answer.headers[name] for name in _HANDED_BACK if name in answer.headers}
        is_watch = "watch=" in request.query_string and answer.ok
        data = b"" if is_watch else await answer.read()
        if not self.interference.after(call) and request.transport:
            request.transport.abort()
        if not is_watch:
            return web.Response(status=answer.status, body=data, headers=headers)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        resource = what.partition(" ")[2]
        connection = request.transport
        if connection is None or upstream != self._upstream:
            return response
        self._watches.add(connection)
        try:
            async for line in self.interference.watch(self._events(answer, resource)):
                await response.write(line)
        finally:
            self._watches.discard(connection)
        return response

    async def _events(self, answer: aiohttp.ClientResponse, resource: str) -> Events:
        while line := await answer.content.readline():
            what = describe_event(resource, line)
            call = self._counter.next(what)
            if what:
                self.recording.events.append(call)
            yield call, line
