"""Performs the steps of an operation over HTTP, in an event loop."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, assert_never

import httpx

from asyncjob.client.rest.errors import error_from_answer
from asyncjob.client.rest.events import EventStream
from asyncjob.client.rest.http import (
    JITTER,
    RequestBuilder,
    httpx_timeout,
    no_response_error,
    to_answer,
)
from asyncjob.client.steps import Answer, Call, Listen, Next, Pause, Step
from asyncjob.json_types import JsonObject


class AsyncHttpWorld:
    """One run of an operation."""

    def __init__(self, http: httpx.AsyncClient, wire: RequestBuilder) -> None:
        self._http = http
        self._wire = wire
        self._response: httpx.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._events = EventStream()

    async def do(self, step: Step) -> Answer:
        """Do one step."""
        match step:
            case Call():
                return await self._send(step)
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds * random.uniform(*JITTER))
                return Answer(_now())
            case Listen():
                await self._listen(step)
                return Answer(_now())
            case Next():
                event = await self._next()
                return Answer(_now(), event)
            case _:
                assert_never(step)

    async def aclose(self) -> None:
        """Close the stream, if one is open."""
        response, self._response, self._chunks = self._response, None, None
        if response is not None:
            await response.aclose()

    async def _send(self, call: Call) -> Answer:
        request: Any = self._wire.request(call)
        try:
            response = await self._http.request(
                **request, timeout=httpx_timeout(call.timeout_seconds)
            )
        except httpx.HTTPError as error:
            raise no_response_error(call, error) from error
        return to_answer(response, _now())

    async def _listen(self, step: Listen) -> None:
        await self.aclose()
        asked: Any = self._wire.request(step.call)
        try:
            request = self._http.build_request(**asked, timeout=httpx_timeout(step.max_silence))
            self._response = response = await self._http.send(request, stream=True)
            if response.status_code != httpx.codes.OK:
                await response.aread()
                await self.aclose()
                raise error_from_answer(to_answer(response, _now()))
        except httpx.HTTPError as error:
            raise no_response_error(step.call, error) from error
        self._chunks, self._events = response.aiter_bytes(), EventStream()

    async def _next(self) -> JsonObject | None:
        with suppress(
            httpx.HTTPError, httpx.StreamError, StopAsyncIteration
        ):  # an end like any other
            while self._chunks is not None and not self._events.ready:
                self._events.feed(await anext(self._chunks))
        return self._events.ready.popleft() if self._events.ready else None


def _now() -> float:
    return asyncio.get_running_loop().time()
