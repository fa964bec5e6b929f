"""Sends the requests of a client to the gateway, with httpx, and reads its streams."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeAlias

import httpx
import orjson

from asyncjob.app.threads import run_in_daemon_thread
from asyncjob.client.connection import Answer, Call, Connection, NextEvent
from asyncjob.client.errors import ClientConfigError, GatewayUnavailableError
from asyncjob.client.rest.errors import error_from_answer
from asyncjob.client.rest.events import EventStream
from asyncjob.json_types import Json, JsonObject

USER_AGENT: Final = "asyncjob-client"

CONNECT_SECONDS: Final = 5.0
RESPONSE_SECONDS: Final = 60.0

ReadToken: TypeAlias = Callable[[], Awaitable[str | None]]
"""Gives the token of the next request; called for each, so that it may change."""


class HttpConnection(Connection):
    """Requests and streams to the gateway at an address without a slash at its end."""

    def __init__(self, http: httpx.AsyncClient, url: str, read_token: ReadToken) -> None:
        self._http = http
        self._url = url
        self._read_token = read_token

    async def send(self, call: Call) -> Answer:
        """Send a request once, whatever the answer says."""
        request = await self._request(call, call.timeout_seconds)
        try:
            return _to_answer(await self._http.send(request))
        except httpx.HTTPError as error:
            raise _no_response_error(call, error) from error

    @asynccontextmanager
    async def stream(self, call: Call, max_silence: float) -> AsyncIterator[NextEvent]:
        """Open a stream of server-sent events."""
        request = await self._request(call, max_silence)
        try:
            response = await self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            raise _no_response_error(call, error) from error
        try:
            if response.status_code != httpx.codes.OK:
                raise error_from_answer(await _read_answer(call, response))
            yield partial(_next_event, response.aiter_bytes(), EventStream())
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _request(self, call: Call, read_seconds: float | None) -> httpx.Request:
        """Return the request as it is sent; raises ClientConfigError where the token is none."""
        headers = {"Accept": call.accept, "User-Agent": USER_AGENT, **dict(call.headers)}
        token = await self._read_token()
        if token:
            if not (token.isascii() and token.isprintable()):
                raise ClientConfigError("the token has characters that no bearer token can have")
            headers["Authorization"] = f"Bearer {token}"
        content = None if call.body is None else orjson.dumps(call.body)
        if content is not None:
            headers["Content-Type"] = call.content_type
        seconds = RESPONSE_SECONDS if read_seconds is None else read_seconds
        return self._http.build_request(
            call.method,
            self._url + call.path,
            params=list(call.params),
            headers=headers,
            content=content,
            timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
        )


async def _read_answer(call: Call, response: httpx.Response) -> Answer:
    try:
        await response.aread()
    except httpx.HTTPError as error:
        raise _no_response_error(call, error) from error
    return _to_answer(response)


async def _next_event(chunks: AsyncIterator[bytes], events: EventStream) -> JsonObject | None:
    with suppress(httpx.HTTPError, httpx.StreamError, StopAsyncIteration):  # an end like any other
        while not events.ready:
            events.feed(await anext(chunks))
    return events.ready.popleft() if events.ready else None


def _to_answer(response: httpx.Response) -> Answer:
    return Answer(_json(response.content), response.status_code, dict(response.headers))


def _json(content: bytes) -> Json:
    try:
        value: Json = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return value


def _no_response_error(call: Call, error: Exception) -> GatewayUnavailableError:
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return GatewayUnavailableError(f"no answer to {call.method} {call.path}: {what}")


class ThreadedTransport(httpx.AsyncBaseTransport):
    """A transport for plain code, in an event loop that it does not hold up."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request in a thread."""
        response = await run_in_daemon_thread(
            lambda: self._transport.handle_request(request), "asyncjob-transport"
        )
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_ThreadedStream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close it."""
        await run_in_daemon_thread(self._transport.close, "asyncjob-transport")


class _ThreadedStream(httpx.AsyncByteStream):
    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream: Any = self._response.stream
        chunks: Iterator[bytes] = iter(stream)
        while (
            chunk := await run_in_daemon_thread(lambda: next(chunks, None), "asyncjob-transport")
        ) is not None:
            yield chunk

    async def aclose(self) -> None:
        await run_in_daemon_thread(self._response.close, "asyncjob-transport")
