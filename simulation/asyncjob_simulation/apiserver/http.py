"""HTTP to the API server in memory, behind what the project's transport asks of aiohttp.

So requests pass through the real session, pager, error mapping and retries; what is missing is the
socket. Time passes on the event loop's clock alone.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import unquote, urlsplit

import aiohttp
import orjson
from multidict import CIMultiDict

from asyncjob.kube import ClusterAccess
from asyncjob_simulation.apiserver.errors import expired
from asyncjob_simulation.apiserver.faults import NO_FAULT, Call, Fault, Faults
from asyncjob_simulation.apiserver.server import ApiServer, Request, Response
from asyncjob_simulation.apiserver.watches import Line, Watch

BOOKMARK_SECONDS: Final = 60.0
"""How often a watch tells how far it has come."""

_LAST_BOOKMARK_SECONDS: Final = 2.0
"""So long before its end a watch tells it once more."""

_BEARER: Final = "Bearer "


class MemoryConnections:
    """Opens pools of connections to one API server; `faults` decides what becomes of requests."""

    def __init__(self, server: ApiServer, faults: Faults | None = None) -> None:
        self.server = server
        self.faults = faults
        self.bookmark_seconds = BOOKMARK_SECONDS

    def open_pool(self, _: ClusterAccess, user_agent: str, limit: int) -> aiohttp.ClientSession:
        """Return a pool of at most so many connections at a time; 0: of any number."""
        return cast("aiohttp.ClientSession", MemoryPool(self, user_agent, limit))

    def judge(self, call: Call) -> Fault:
        """Return what becomes of a request."""
        return self.faults.on_request(call) if self.faults else NO_FAULT

    def carry_out(self, request: Request, call: Call, fault: Fault) -> Response:  # noqa: ARG002
        """Answer a request that has arrived; `call` and `fault` are for who watches."""
        if not fault.status:
            return self.server.handle(request)
        if fault.takes_effect:
            self.server.handle(request)
        return _refusal(fault)

    def judge_event(self, call: Call, line: Line) -> Fault:
        """Return what becomes of an event."""
        return self.faults.on_event(call, line.type, line.version) if self.faults else NO_FAULT


class MemoryPool:
    """Stands in for `aiohttp.ClientSession`."""

    def __init__(self, connections: MemoryConnections, user_agent: str, limit: int) -> None:
        self._connections = connections
        self._user_agent = user_agent
        self._free = asyncio.Semaphore(limit) if limit else None
        self._open: dict[WatchBody, None] = {}

    async def close(self) -> None:
        """Close all connections."""
        self.close_streams()

    def close_streams(self) -> None:
        """End all watches."""
        for stream in list(self._open):
            stream.close()

    async def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str],
        data: bytes | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # aiohttp's own name
        **_: object,
    ) -> "MemoryResponse":
        """Send a request and return the answer; raises TimeoutError or what aiohttp raises."""
        request = Request(
            method,
            unquote(urlsplit(url).path),
            params,
            data or b"",
            headers["Content-Type"],
            headers["Accept"],
            headers.get("Authorization", "").removeprefix(_BEARER),
        )
        call = Call(
            method, request.path, request.is_watch, self._user_agent, request.body, request.query
        )
        async with asyncio.timeout(timeout.total):
            if self._free is None:
                return await self._send(request, call)
            async with self._free:
                return await self._send(request, call)

    async def _send(self, request: Request, call: Call) -> "MemoryResponse":
        """Send a request, which reaches the server whatever becomes of who has sent it."""
        fault = self._connections.judge(call)
        if fault.lost == "late":
            _after(fault.before, self._connections.carry_out, request, call, fault)
            raise aiohttp.ServerDisconnectedError
        if fault.before or fault.after:
            answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
            _after(fault.before, self._arrive, request, call, fault, answer)
            response = await answer
        elif fault.lost == "before":
            raise aiohttp.ServerDisconnectedError
        else:
            response = self._connections.carry_out(request, call, fault)
            if fault.lost:
                raise aiohttp.ServerDisconnectedError
        if response.watch is None:
            return MemoryResponse(response, None)
        stream = WatchBody(self._connections, response.watch, call, request, self._open)
        return MemoryResponse(response, stream)

    def _arrive(
        self, request: Request, call: Call, fault: Fault, answer: asyncio.Future[Response]
    ) -> None:
        """Carry out a request, and have the answer, or its loss, reach the client."""
        result: Response | Exception = aiohttp.ServerDisconnectedError()
        if fault.lost != "before":
            response = self._connections.carry_out(request, call, fault)
            result = result if fault.lost else response
        _after(fault.after, _settle, answer, result)


def _after(seconds: float, callback: Callable[..., object], *args: object) -> None:
    """Call after a while, in nobody's name; never where the time is infinite."""
    if seconds < math.inf:
        asyncio.get_running_loop().call_later(seconds, callback, *args, context=Context())


def _settle(answer: asyncio.Future[Response], result: Response | Exception) -> None:
    if answer.done():  # nobody waits any more
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)


def _refusal(fault: Fault) -> Response:
    reason = fault.reason or {429: "TooManyRequests", 409: "Conflict"}.get(fault.status, "")
    status = {
        "kind": "Status",
        "code": fault.status,
        "reason": reason,
        "message": fault.message,
    }
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return Response(fault.status, orjson.dumps(status), headers)


class MemoryResponse:
    """Stands in for `aiohttp.ClientResponse`."""

    connection: Final = None

    def __init__(self, response: Response, stream: "WatchBody | None") -> None:
        self.status = response.status
        self.headers = CIMultiDict(response.headers)
        for words in response.warnings:
            self.headers.add("Warning", f"299 - {orjson.dumps(words).decode()}")
        self._stream = stream
        self.content: Any = stream or _Body(response.body)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def read(self) -> bytes:
        """Return the whole body."""
        return bytes(await self.content.readany())

    def close(self) -> None:
        """Read no further."""
        if self._stream is not None:
            self._stream.close()


class _Body:
    """A body that is there at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def readany(self) -> bytes:
        """Return what has not been read yet."""
        data, self._data = self._data, b""
        return data


class WatchBody:
    """The body of a watch: events come when they happen, or as late as the faults want."""

    def __init__(
        self,
        connections: MemoryConnections,
        watch: Watch,
        call: Call,
        request: Request,
        open_streams: "dict[WatchBody, None]",
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connections = connections
        self._watch = watch
        self._call = call
        self._streams = open_streams
        self._coming: deque[tuple[float, bytes]] = deque()
        self._reader: asyncio.Future[None] | None = None
        """Of who waits for something to read, to be woken by `_alarm`."""

        self._alarm: asyncio.TimerHandle | None = None
        self._context = copy_context()
        self._last_ready = 0.0
        self._broken_at: float | None = None
        self._ends_at = self._loop.time() + float(request.query.get("timeoutSeconds") or 1800)
        self._wants_bookmarks = request.query.get("allowWatchBookmarks") == "true"
        self._next_bookmark = self._bookmark_after(self._loop.time())
        open_streams[self] = None
        watch.subscribe(self._on_change)
        self._on_change()

    def close(self) -> None:
        """End the watch."""
        self._watch.close(self._on_change)
        self._streams.pop(self, None)
        self._wake()

    def _on_change(self) -> None:
        """Take up what has happened, with the time at which the client is to hear of it."""
        if self._broken_at is None and self._watch.is_open:
            for line in self._watch.lines():
                self._take(line)

    def _take(self, line: Line) -> None:
        if self._broken_at is not None:
            return
        fault = self._connections.judge_event(self._call, line)
        if fault.drops:
            return
        ready = max(self._last_ready, self._loop.time() + fault.before + fault.after)
        self._last_ready = ready
        if fault.breaks or fault.lost:
            self._broken_at = ready
        elif fault.expires:
            error = expired("too old resource version: the watch fell behind")
            self._coming.append((ready, self._watch.error(error).data))
        else:
            self._coming.append((ready, line.data))
        if self._alarm is not None and ready < self._alarm.when():
            self._wake_at(ready)

    async def readany(self) -> bytes:
        """Return what has come; nothing once the watch is over."""
        while True:
            now = self._loop.time()
            chunk = self._ready(now)
            if chunk:
                return chunk
            if self._broken_at is not None and not self._coming and now >= self._broken_at:
                raise aiohttp.ClientPayloadError("connection broken")
            if self._is_over(now):
                self.close()
                return b""
            if self._wants_bookmarks and now >= self._next_bookmark and not self._coming:
                self._next_bookmark = self._bookmark_after(now)
                self._take(self._watch.bookmark(self._connections.server.storage.version))
                continue
            await self._wait(now)

    def _bookmark_after(self, now: float) -> float:
        """Return when the next bookmark is due: regularly, and shortly before the end."""
        regular, last = (
            now + self._connections.bookmark_seconds,
            self._ends_at - _LAST_BOOKMARK_SECONDS,
        )
        return min(regular, last) if now < last else math.inf

    def _ready(self, now: float) -> bytes:
        lines = []
        while self._coming and self._coming[0][0] <= now:
            lines.append(self._coming.popleft()[1])
        return b"".join(lines)

    def _is_over(self, now: float) -> bool:
        if self._coming or self._broken_at is not None:
            return False
        return not self._watch.is_open or now >= self._ends_at or self not in self._streams

    async def _wait(self, now: float) -> None:
        times = [self._ends_at]
        if self._wants_bookmarks and not self._coming:
            times.append(self._next_bookmark)
        if self._broken_at is not None:
            times = [self._broken_at]
        if self._coming:
            times = [self._coming[0][0]]
        self._reader = self._loop.create_future()
        self._wake_at(max(now, min(times)))
        try:
            await self._reader
        finally:
            self._reader = None
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None

    def _wake_at(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._wake, context=self._context)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
