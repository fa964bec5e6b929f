"""Does the steps of an operation with a session to the API server."""

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Final, assert_never

import aiohttp
import orjson

from asyncjob.client.steps import Answer, Call, Listen, Next, Pause, Step
from asyncjob.errors import UnknownOutcomeError
from asyncjob.json_types import JsonObject
from asyncjob.kube.answers import parse
from asyncjob.kube.session import KubeSession
from asyncjob.kube.transport import SHORT_SECONDS, Request, abandon
from asyncjob.kube.watch import WatchEvent, events, open_watch

SPREAD: Final = (0.8, 1.2)
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
                return Answer(_now(), parse(body), size=len(body))
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds * random.uniform(*SPREAD))
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
            abandon(self._response)  # the events do so only if they were begun

    async def _send(self, call: Call) -> bytes:
        try:
            async with asyncio.timeout(call.within):
                return await self._session.fetch(_request(call))
        except TimeoutError as error:
            raise _no_answer(call) from error

    async def _listen(self, step: Listen) -> None:
        await self.aclose()
        self._silence = step.silence
        try:
            async with asyncio.timeout(step.silence):
                self._response = await open_watch(
                    self._session, step.call.path, dict(step.call.params)
                )
        except TimeoutError as error:
            raise _no_answer(step.call) from error
        self._events = events(self._response)

    async def _next(self) -> JsonObject | None:
        if self._events is None:
            return None
        try:
            async with asyncio.timeout(self._silence):
                event = await anext(self._events, None)
        except TimeoutError:
            event = None
        return None if event is None else {"type": event.type, "object": event.object}


def _request(call: Call) -> Request:
    data = None if call.body is None else orjson.dumps(call.body)
    return Request(
        call.method,
        call.path,
        dict(call.params),
        data,
        call.content_type,
        call.accept,
        seconds=call.within or SHORT_SECONDS,
        most_bytes=call.most_bytes,
    )


def _no_answer(call: Call) -> UnknownOutcomeError:
    return UnknownOutcomeError(f"no answer to {call.method} {call.path} in time")


def _now() -> float:
    return asyncio.get_running_loop().time()
