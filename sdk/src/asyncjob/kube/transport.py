"""HTTP to the API server: signs, sends and times requests, and maps every failure to an SDK error.

Sockets use TCP keepalive, because a watch is silent for minutes even when it is healthy, and a
vanished peer must still be noticed.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp
import orjson

from asyncjob.deep_json import loads
from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InvalidError,
    NoClusterError,
    ObjectNotFoundError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject, as_object, integer, text
from asyncjob.kube.access import ClusterAccess
from asyncjob.kube.pacing import retry_after_delay
from asyncjob.kube.paging import PageTooLargeError

KEEPALIVE_IDLE_SECONDS: Final = 15
KEEPALIVE_PROBE_SECONDS: Final = 5
KEEPALIVE_PROBES: Final = 3
"""A peer that is gone without a word is noticed after 15 + 3 * 5 s: half of the default lease."""

_KEEPALIVE_OPTIONS: Final = (
    ("TCP_KEEPIDLE", KEEPALIVE_IDLE_SECONDS),
    ("TCP_KEEPINTVL", KEEPALIVE_PROBE_SECONDS),
    ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    (
        "TCP_USER_TIMEOUT",
        (KEEPALIVE_IDLE_SECONDS + KEEPALIVE_PROBE_SECONDS * KEEPALIVE_PROBES) * 1000,
    ),
)
"""Not every system has all of them; those that lack one fall back to its own default."""


def keepalive_socket(
    address: tuple[
        int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[object, ...]
    ],
) -> socket.socket:
    """Return a socket whose connection breaks within about half a minute of losing its peer."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


_ERROR_BY_CODE: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: ObjectNotFoundError,
    409: ConflictError,
    410: ExpiredError,
    413: TooLargeError,
    422: InvalidError,
}

_TOO_LARGE_MESSAGES = ("request is too large", "message larger than max", "exceeds the limit")
"""What etcd and its client say, behind a 500, of an object that can never be stored."""


def parse_object(body: bytes) -> JsonObject:
    """Return the JSON object of an answer, or an empty one where it is none."""
    try:
        return as_object(loads(body))
    except orjson.JSONDecodeError:
        return {}


def error_from_response(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error that an answer with a code of 400 or more stands for."""
    answer = parse_object(body)
    reason = text(answer, "reason")
    message = text(answer, "message") or body[:500].decode(errors="replace") or f"HTTP {code}"
    header = retry_after or ""
    wait = float(header) if header.isascii() and header.isdigit() else 0.0
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return ThrottledError(message, status=code, reason=reason, retry_after=wait or 1.0)
    return _error_type(code, reason, message)(message, status=code, reason=reason, retry_after=wait)


def error_from_watch_event(answer: JsonObject) -> ApiError:
    """Return the error of a watch's ERROR event, whose object is a Status."""
    code = integer(answer, "code", 500)
    message, reason = text(answer, "message", f"watch error {code}"), text(answer, "reason")
    return _error_type(code, reason, message)(message, status=code, reason=reason)


def _error_type(code: int, reason: str, message: str) -> type[ApiError]:
    if reason == "AlreadyExists":
        return AlreadyExistsError
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR and any(
        words in message for words in _TOO_LARGE_MESSAGES
    ):
        return TooLargeError
    if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnknownOutcomeError
    return _ERROR_BY_CODE.get(code, ApiError)


_JSON: Final = "application/json"
_CONNECT_TIMEOUT_SECONDS: Final = 5.0
"""Linux sends the first packet of a connection again after 1 and 3 s: two may be lost."""

_MAX_THROTTLED_TRIES: Final = 4
"""Tries after which a server that asks for patience is no longer obeyed silently: with
`MAX_RETRY_AFTER` that is a minute at the most, then the caller is told and paces itself."""

REQUEST_TIMEOUT_SECONDS: Final = 15.0
"""How long the answer about a single object may take."""

_STREAM_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_SECONDS)
_STREAM_OPEN_SECONDS: Final = 30.0
"""Until the server answers that a watch has begun. A server that accepts connections and never
answers would otherwise hold the watcher for good. Twice what a single object gets."""

_MAX_DATE_LAG_SECONDS: Final = 2.0
"""How long an answer may have been on its way to tell what time it is."""

_MAX_DATE_AGE_SECONDS: Final = 600.0
"""After this long the time is taken from late answers, too: clocks do not run at the same speed."""

_CLOSING_ITERATIONS: Final = 3
"""Of the event loop, in which closed connections give their sockets back; it may end after that."""

_CONNECTION_ERRORS: Final = (aiohttp.ClientError, TimeoutError, ConnectionError)

RequestObserver = Callable[[str, int, float], None]
"""Called after each request with method, HTTP code (0: no answer) and seconds."""


def unobserved(_method: str, _code: int, _seconds: float) -> None:
    """Observe nothing: the `RequestObserver` of clients that export no metrics."""


def ignore_send() -> None:
    """Do nothing before a request is sent: few senders need to know when that is."""


Params = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """One HTTP request, before it is signed.

    An answer is waited for this many seconds, and read up to this many bytes.
    """

    method: str
    path: str
    params: Params
    data: bytes | None = None
    content_type: str = _JSON
    accept: str = _JSON
    timeout_seconds: float = REQUEST_TIMEOUT_SECONDS
    max_bytes: int | None = None
    on_send: Callable[[], None] = ignore_send
    """Called each time before it is sent: one that is throttled is sent again."""


class KubeTransport:
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
        observer: RequestObserver,
    ) -> None:
        self._access = access
        self._observer = observer
        open_pool = access.open_pool or _connection_pool
        self._request_pool = open_pool(access, user_agent, connections)
        self._stream_pool = open_pool(access, user_agent, 0)
        self.server_date: tuple[str, float] | None = None
        """The Date of the newest prompt answer, and when it came on the event loop's clock."""

    async def close(self) -> None:
        """Close all connections."""
        await self._request_pool.close()
        await self._stream_pool.close()
        for _ in range(_CLOSING_ITERATIONS):
            await asyncio.sleep(0)

    async def send(self, request: KubeRequest) -> JsonObject:
        """Send and return the answer; waits when told to, signs in again once when refused."""
        return parse_object(await self.fetch(request))

    async def fetch(self, request: KubeRequest) -> bytes:
        """Send and return the answer's body; raises PageTooLargeError beyond its limit."""
        signed_in_again = False
        for _ in range(_MAX_THROTTLED_TRIES):
            try:
                return await self._send_once(request)
            except ThrottledError as error:
                await asyncio.sleep(retry_after_delay(error.retry_after))
            except UnauthorizedError:
                if signed_in_again:
                    raise
                signed_in_again = True
                await self._reload_credentials()
        return await self._send_once(request)

    async def open_stream(self, request: KubeRequest) -> aiohttp.ClientResponse:
        """Send and return the answer unread; the caller closes it."""
        try:
            async with asyncio.timeout(_STREAM_OPEN_SECONDS):
                response = await self._request(self._stream_pool, request, _STREAM_TIMEOUT)
                if response.status < HTTPStatus.BAD_REQUEST:
                    return response
                body = await response.read()
        except _CONNECTION_ERRORS as error:
            raise _no_response_error(request, error) from error
        if response.status == HTTPStatus.UNAUTHORIZED:
            await self._reload_credentials()
        raise error_from_response(response.status, body, response.headers.get("Retry-After"))

    async def _reload_credentials(self) -> None:
        try:
            await self._access.reload()
        except NoClusterError as error:
            # A token that cannot be read just now is no proof that it has been withdrawn.
            raise UnknownOutcomeError(f"credentials refused and not readable: {error}") from error

    async def _send_once(self, request: KubeRequest) -> bytes:
        loop = asyncio.get_running_loop()
        started, code = loop.time(), 0
        request.on_send()
        limits = aiohttp.ClientTimeout(
            total=request.timeout_seconds, sock_connect=_CONNECT_TIMEOUT_SECONDS
        )
        try:
            async with await self._request(self._request_pool, request, limits) as response:
                code, answer = response.status, await _read_body(response, request)
        except _CONNECTION_ERRORS as error:
            raise _no_response_error(request, error) from error
        finally:
            self._observer(request.method, code, loop.time() - started)
        if code >= HTTPStatus.BAD_REQUEST:
            raise error_from_response(code, answer, response.headers.get("Retry-After"))
        return answer

    async def _request(
        self, http: aiohttp.ClientSession, request: KubeRequest, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        access, loop = self._access, asyncio.get_running_loop()
        sent_at = loop.time()
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
            self._keep_date(response.headers["Date"], sent_at, loop.time())
        return response

    def _keep_date(self, date: str, sent_at: float, came_at: float) -> None:
        """Keep what an answer tells of the time, unless it was long on its way.

        An answer that waits unread, because this process stands still, tells of the past.
        """
        known = self.server_date
        if (
            known is None
            or came_at - sent_at <= _MAX_DATE_LAG_SECONDS
            or came_at - known[1] > _MAX_DATE_AGE_SECONDS
        ):
            self.server_date = date, came_at


def _connection_pool(access: ClusterAccess, user_agent: str, limit: int) -> aiohttp.ClientSession:
    """Return a pool of at most this many connections; 0: of any number."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=limit, ssl=access.ssl_context, socket_factory=keepalive_socket
        ),
        read_bufsize=2**18,
        headers={"User-Agent": user_agent},
    )


def abort_response(response: aiohttp.ClientResponse) -> None:
    """Close an answer that nobody reads any further, and its connection at once.

    Closed politely, TLS would wait for the server's goodbye in an event loop that may end before.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _read_body(response: aiohttp.ClientResponse, request: KubeRequest) -> bytes:
    if request.max_bytes is None:
        return await response.read()
    body = bytearray()
    while chunk := await response.content.readany():
        body += chunk
        if len(body) > request.max_bytes:
            abort_response(response)
            raise PageTooLargeError(f"answer to {request.method} {request.path} is too large")
    return bytes(body)


def _no_response_error(request: KubeRequest, error: BaseException) -> UnknownOutcomeError:
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return UnknownOutcomeError(f"no answer to {request.method} {request.path}: {what}")
