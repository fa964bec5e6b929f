"""Sends the requests of a client with a session to the API server, and opens its watches."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

from asyncjob.client.connection import Answer, Call, Connection, NextEvent
from asyncjob.deep_json import encode
from asyncjob.errors import ApiError, UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import (
    REQUEST_TIMEOUT_SECONDS,
    KubeRequest,
    abort_response,
    parse_object,
)
from asyncjob.kube.watch import WatchEvent, open_watch, read_events

AnswerHook: TypeAlias = Callable[[Call, Answer], Awaitable[None]]
"""Called with each answer before the client gets it; what it raises, the client gets."""


class KubeConnection(Connection):
    """Requests and watches of a session. Raises what the API server answers, as the SDK's errors.

    `hook` looks at each answer first.
    """

    def __init__(self, session: KubeSession, hook: AnswerHook | None = None) -> None:
        self._session = session
        self._hook = hook

    async def send(self, call: Call) -> Answer:
        """Send a request once."""
        try:
            async with asyncio.timeout(call.timeout_seconds):
                body = await self._session.fetch(_to_request(call))
        except TimeoutError as error:
            raise _no_response_error(call) from error
        answer = Answer(parse_object(body), size=len(body))
        if self._hook is not None:
            await self._hook(call, answer)
        return answer

    @asynccontextmanager
    async def stream(self, call: Call, max_silence: float) -> AsyncIterator[NextEvent]:
        """Open a watch."""
        try:
            async with asyncio.timeout(max_silence):
                response = await open_watch(self._session, call.path, dict(call.params))
        except TimeoutError as error:
            raise _no_response_error(call) from error
        try:
            async with aclosing(read_events(response)) as events:
                yield lambda: _next_event(events, max_silence)
        finally:
            abort_response(response)  # the events do so only if they were begun

    def server_time(self) -> float | None:
        """Return the API server's clock, as its newest answer told it."""
        return self._session.server_time()

    async def close(self) -> None:
        """Close the session."""
        await self._session.close()


async def _next_event(events: AsyncGenerator[WatchEvent], max_silence: float) -> JsonObject | None:
    try:
        async with asyncio.timeout(max_silence):
            event = await anext(events, None)
    except (ApiError, TimeoutError):  # an end like any other: a look tells the rest
        return None
    return None if event is None else {"type": event.type, "object": event.object}


def _to_request(call: Call) -> KubeRequest:
    data = None if call.body is None else encode(call.body)
    return KubeRequest(
        call.method,
        call.path,
        dict(call.params),
        data,
        call.content_type,
        call.accept,
        timeout_seconds=call.timeout_seconds or REQUEST_TIMEOUT_SECONDS,
        max_bytes=call.max_bytes,
    )


def _no_response_error(call: Call) -> UnknownOutcomeError:
    return UnknownOutcomeError(f"no answer to {call.method} {call.path} in time")
