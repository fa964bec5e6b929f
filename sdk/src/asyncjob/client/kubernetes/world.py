"""Performs the steps of an operation with a session to the API server."""

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Final, assert_never

import aiohttp

from asyncjob.client.steps import Answer, Call, Listen, Next, Pause, Step
from asyncjob.deep_json import encode
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import (
    REQUEST_TIMEOUT_SECONDS,
    KubeRequest,
    abort_response,
    parse_object,
)
from asyncjob.kube.watch import WatchEvent, open_watch, read_events

JITTER: Final = (0.8, 1.2)
"""Pauses are this much shorter or longer by chance, so that many clients do not come back at once.
"""


class KubeWorld:
    """One run of an operation. Raises what the API server answers, as the SDK's errors."""

    def __init__(self, session: KubeSession) -> None:
        self._session = session
        self._response: aiohttp.ClientResponse | None = None
        self._events: AsyncGenerator[WatchEvent] | None = None
        self._silence = 0.0

    async def do(self, step: Step) -> Answer:
        """Do one step."""
        match step:
            case Call():
                body = await self._send(step)
                return Answer(_now(), parse_object(body), size=len(body))
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds * random.uniform(*JITTER))
                return Answer(_now())
            case Listen():
                await self._listen(step)
                return Answer(_now())
            case Next():
                return Answer(_now(), await self._next())
            case _:
                assert_never(step)

    async def aclose(self) -> None:
        """Close the watch, if one is open."""
        opened, self._events = self._events, None
        if opened is not None:
            await opened.aclose()
        if self._response is not None:
            abort_response(self._response)  # the events do so only if they were begun

    async def _send(self, call: Call) -> bytes:
        try:
            async with asyncio.timeout(call.timeout_seconds):
                return await self._session.fetch(_to_request(call))
        except TimeoutError as error:
            raise _no_response_error(call) from error

    async def _listen(self, step: Listen) -> None:
        await self.aclose()
        self._silence = step.max_silence
        try:
            async with asyncio.timeout(step.max_silence):
                self._response = await open_watch(
                    self._session, step.call.path, dict(step.call.params)
                )
        except TimeoutError as error:
            raise _no_response_error(step.call) from error
        self._events = read_events(self._response)

    async def _next(self) -> JsonObject | None:
        if self._events is None:
            return None
        try:
            async with asyncio.timeout(self._silence):
                event = await anext(self._events, None)
        except TimeoutError:
            event = None
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


def _now() -> float:
    return asyncio.get_running_loop().time()
