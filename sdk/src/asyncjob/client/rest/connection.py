"""Sends the requests of a client to the gateway, with httpx, and reads its streams."""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import httpx

from asyncjob.client.connection import Answer, Call, Connection, NextEvent
from asyncjob.client.errors import ClientConfigError, GatewayUnavailableError
from asyncjob.client.rest.auth import TokenSource
from asyncjob.client.rest.errors import error_from_answer
from asyncjob.client.rest.events import EventStream
from asyncjob.json_text import dumps, loads
from asyncjob.json_types import Json, JsonObject

USER_AGENT: Final = "asyncjob-client"

CONNECT_SECONDS: Final = 5.0
"""Linux sends the first packet of a connection again after 1 and 3 s: two may be lost."""

RESPONSE_SECONDS: Final = 60.0
"""Until the next bytes of an answer. A gateway that is alive answers sooner, if only that a request
has timed out (`--request-timeout`)."""


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """How requests are made: the gateway's address without a slash at its end, and who asks."""

    url: str
    token: TokenSource

    def build(
        self, http: httpx.Client | httpx.AsyncClient, call: Call, read_seconds: float | None
    ) -> httpx.Request:
        """Return the request as it is sent; raises ClientConfigError where the token is none."""
        headers = {"Accept": call.accept, "User-Agent": USER_AGENT, **dict(call.headers)}
        token = self.token()
        if token:
            if not (token.isascii() and token.isprintable()):
                raise ClientConfigError("the token has characters that no bearer token can have")
            headers["Authorization"] = f"Bearer {token}"
        content = None if call.body is None else dumps(call.body)
        if content is not None:
            headers["Content-Type"] = call.content_type
        seconds = RESPONSE_SECONDS if read_seconds is None else read_seconds
        return http.build_request(
            call.method,
            self.url + call.path,
            params=list(call.params),
            headers=headers,
            content=content,
            timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        )


class HttpConnection(Connection):
    """Requests and streams to the gateway, for an event loop."""

    def __init__(self, http: httpx.AsyncClient, requests: RequestBuilder) -> None:
        self._http = http
        self._requests = requests

    async def send(self, call: Call) -> Answer:
        """Send a request once, whatever the answer says."""
        request = self._requests.build(self._http, call, call.timeout_seconds)
        try:
            return _to_answer(await self._http.send(request))
        except httpx.HTTPError as error:
            raise _no_response_error(self._http, call, error) from error

    @asynccontextmanager
    async def stream(self, call: Call, max_silence: float) -> AsyncIterator[NextEvent]:
        """Open a stream of server-sent events."""
        request = self._requests.build(self._http, call, max_silence)
        try:
            response = await self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            raise _no_response_error(self._http, call, error) from error
        try:
            if response.status_code != httpx.codes.OK:
                raise error_from_answer(await _read_answer(self._http, call, response))
            yield partial(_next_event, response.aiter_bytes(), EventStream())
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()


async def _read_answer(http: httpx.AsyncClient, call: Call, response: httpx.Response) -> Answer:
    try:
        await response.aread()
    except httpx.HTTPError as error:
        raise _no_response_error(http, call, error) from error
    return _to_answer(response)


async def _next_event(chunks: AsyncIterator[bytes], events: EventStream) -> JsonObject | None:
    with suppress(httpx.HTTPError, httpx.StreamError, StopAsyncIteration):  # an end like any other
        while not events.ready:
            events.feed(await anext(chunks))
    return events.ready.popleft() if events.ready else None


class BlockingConnection(Connection):
    """The same for plain code: it blocks, and leaves nothing for an event loop to do.

    In a forked process it opens connections of its own. A thread that waits while another closes
    it is not woken: it raises RuntimeError once the answer comes, or its time is over.
    """

    def __init__(self, open_http: Callable[[], httpx.Client], requests: RequestBuilder) -> None:
        self._open_http = open_http
        self._requests = requests
        self._http, self._process = open_http(), os.getpid()
        self._inherited: list[httpx.Client] = []

    async def send(self, call: Call) -> Answer:
        """Send a request once, whatever the answer says."""
        http = self._http_of_process()
        request = self._requests.build(http, call, call.timeout_seconds)
        try:
            return _to_answer(http.send(request))
        except httpx.HTTPError as error:
            raise _no_response_error(http, call, error) from error

    @asynccontextmanager
    async def stream(self, call: Call, max_silence: float) -> AsyncIterator[NextEvent]:
        """Open a stream of server-sent events."""
        http = self._http_of_process()
        request = self._requests.build(http, call, max_silence)
        try:
            response = http.send(request, stream=True)
        except httpx.HTTPError as error:
            raise _no_response_error(http, call, error) from error
        try:
            if response.status_code != httpx.codes.OK:
                raise error_from_answer(_read_blocking(http, call, response))
            chunks, events = response.iter_bytes(), EventStream()

            async def next_event() -> JsonObject | None:
                with suppress(httpx.HTTPError, httpx.StreamError):  # an end like any other
                    while not events.ready and (chunk := next(chunks, None)) is not None:
                        events.feed(chunk)
                return events.ready.popleft() if events.ready else None

            yield next_event
        finally:
            response.close()

    async def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def time(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        time.sleep(seconds)  # noqa: ASYNC251  # the caller has no event loop

    def _http_of_process(self) -> httpx.Client:
        if self._process != os.getpid() and not self._http.is_closed:
            self._inherited.append(self._http)  # collected, it would close what is its parent's
            self._http, self._process = self._open_http(), os.getpid()
        return self._http


def _read_blocking(http: httpx.Client, call: Call, response: httpx.Response) -> Answer:
    try:
        response.read()
    except httpx.HTTPError as error:
        raise _no_response_error(http, call, error) from error
    return _to_answer(response)


def _to_answer(response: httpx.Response) -> Answer:
    return Answer(_json(response.content), response.status_code, dict(response.headers))


def _json(content: bytes) -> Json:
    try:
        return loads(content)
    except ValueError:
        return None


def _no_response_error(
    http: httpx.Client | httpx.AsyncClient, call: Call, error: Exception
) -> Exception:
    if http.is_closed:  # by another thread or task; the gateway is not to blame
        return RuntimeError("the client was closed before the answer came")
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return GatewayUnavailableError(f"no answer to {call.method} {call.path}: {what}")
