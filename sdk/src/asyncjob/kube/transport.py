"""HTTP to the API server: signs, sends, times, and turns every mishap into the SDK's errors."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp

from asyncjob.errors import (
    NoClusterError,
    ThrottledError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject
from asyncjob.kube.access import ClusterAccess
from asyncjob.kube.answers import parse, to_error
from asyncjob.kube.paging import PageTooLargeError
from asyncjob.kube.sockets import watched_socket

_JSON: Final = "application/json"
_CONNECT_TIMEOUT_SECONDS: Final = 5.0
_MAX_RETRY_AFTER_SECONDS: Final = 10.0
_THROTTLED_TRIES: Final = 4

SHORT_SECONDS: Final = 15.0
"""How long the answer about a single object may take."""

_LONG: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_SECONDS)
_OPEN_SECONDS: Final = 30.0
_LAST_TURNS: Final = 3
"""Of the event loop, in which closed connections give their sockets back; it may end after that."""

_FAILURES: Final = (aiohttp.ClientError, TimeoutError, ConnectionError)

Observer = Callable[[str, int, float], None]
"""Called after each request with method, HTTP code (0: no answer) and seconds."""

Params = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, before it is signed.

    An answer is waited for so many seconds, and read up to so many bytes.
    """

    method: str
    path: str
    params: Params
    data: bytes | None = None
    content_type: str = _JSON
    accept: str = _JSON
    seconds: float = SHORT_SECONDS
    most_bytes: int | None = None


class Transport:
    """Connections to one API server under one identity.

    `connections` bounds those of short requests. Long answers have connections of their own, as
    many as there are watches: in one pool, watches would leave requests to wait in vain.
    """

    def __init__(
        self,
        access: ClusterAccess,
        *,
        user_agent: str,
        connections: int,
        observer: Observer | None,
    ) -> None:
        self._access = access
        self._observer = observer
        self._short = _pool(access, user_agent, connections)
        self._long = _pool(access, user_agent, 0)
        self.date: tuple[str, float] | None = None
        """The Date of the newest answer, and when it came on the event loop's clock."""

    async def close(self) -> None:
        """Close all connections."""
        await self._short.close()
        await self._long.close()
        for _ in range(_LAST_TURNS):
            await asyncio.sleep(0)

    async def send(self, request: Request) -> JsonObject:
        """Send and return the answer; waits when told to, signs in again once when refused."""
        return parse(await self.fetch(request))

    async def fetch(self, request: Request) -> bytes:
        """Send and return the answer's body; raises PageTooLargeError beyond its limit."""
        signed_in_again = False
        for _ in range(_THROTTLED_TRIES):
            try:
                return await self._send_once(request)
            except ThrottledError as error:
                await asyncio.sleep(min(error.retry_after, _MAX_RETRY_AFTER_SECONDS))
            except UnauthorizedError:
                if signed_in_again:
                    raise
                signed_in_again = True
                await self._sign_in_again()
        return await self._send_once(request)

    async def open(self, request: Request) -> aiohttp.ClientResponse:
        """Send and return the answer unread; the caller closes it."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                response = await self._open(self._long, request, _LONG)
                if response.status < HTTPStatus.BAD_REQUEST:
                    return response
                body = await response.read()
        except _FAILURES as error:
            raise _no_answer(request, error) from error
        if response.status == HTTPStatus.UNAUTHORIZED:
            await self._sign_in_again()
        raise to_error(response.status, body, response.headers.get("Retry-After"))

    async def _sign_in_again(self) -> None:
        try:
            await self._access.reload()
        except NoClusterError as error:
            # A token that cannot be read just now is no proof that it has been withdrawn.
            raise UnknownOutcomeError(f"credentials refused and not readable: {error}") from error

    async def _send_once(self, request: Request) -> bytes:
        loop = asyncio.get_running_loop()
        started, code = loop.time(), 0
        limits = aiohttp.ClientTimeout(total=request.seconds, sock_connect=_CONNECT_TIMEOUT_SECONDS)
        try:
            async with await self._open(self._short, request, limits) as response:
                code, answer = response.status, await _body(response, request)
        except _FAILURES as error:
            raise _no_answer(request, error) from error
        finally:
            if self._observer:
                self._observer(request.method, code, loop.time() - started)
        if code >= HTTPStatus.BAD_REQUEST:
            raise to_error(code, answer, response.headers.get("Retry-After"))
        return answer

    async def _open(
        self, http: aiohttp.ClientSession, request: Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        access = self._access
        response = await http.request(
            request.method,
            access.host + request.path,
            params=request.params,
            data=request.data,
            headers={
                "Accept": request.accept,
                "Content-Type": request.content_type,
                **await access.headers(),
            },
            timeout=limits,
            server_hostname=access.server_hostname,
            proxy=access.proxy,
        )
        if "Date" in response.headers:
            self.date = response.headers["Date"], asyncio.get_running_loop().time()
        return response


def _pool(access: ClusterAccess, user_agent: str, limit: int) -> aiohttp.ClientSession:
    """Return a pool of at most so many connections; 0: of any number."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=limit, ssl=access.ssl_context, socket_factory=watched_socket
        ),
        read_bufsize=2**18,
        headers={"User-Agent": user_agent},
    )


def abandon(response: aiohttp.ClientResponse) -> None:
    """Close an answer that nobody reads any further, and its connection at once.

    Closed politely, TLS would wait for the server's goodbye in an event loop that may end before.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _body(response: aiohttp.ClientResponse, request: Request) -> bytes:
    if request.most_bytes is None:
        return await response.read()
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if len(body) > request.most_bytes:
            abandon(response)
            raise PageTooLargeError(f"answer to {request.method} {request.path} is too large")
    return bytes(body)


def _no_answer(request: Request, error: BaseException) -> UnknownOutcomeError:
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return UnknownOutcomeError(f"no answer to {request.method} {request.path}: {what}")
