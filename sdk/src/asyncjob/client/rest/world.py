"""Performs the steps of an operation over HTTP, synchronously."""

import random
import time
from collections.abc import Iterator
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


class HttpWorld:
    """One run of an operation."""

    def __init__(self, http: httpx.Client, wire: RequestBuilder) -> None:
        self._http = http
        self._wire = wire
        self._response: httpx.Response | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._events = EventStream()

    def do(self, step: Step) -> Answer:
        """Do one step."""
        match step:
            case Call():
                return self._send(step)
            case Pause(seconds=seconds):
                time.sleep(seconds * random.uniform(*JITTER))
                return Answer(time.monotonic())
            case Listen():
                self._listen(step)
                return Answer(time.monotonic())
            case Next():
                event = self._next()
                return Answer(time.monotonic(), event)
            case _:
                assert_never(step)

    def close(self) -> None:
        """Close the stream, if one is open."""
        if self._response is not None:
            self._response.close()
            self._response = None

    def _send(self, call: Call) -> Answer:
        request: Any = self._wire.request(call)
        try:
            response = self._http.request(**request, timeout=httpx_timeout(call.timeout_seconds))
        except httpx.HTTPError as error:
            raise no_response_error(call, error) from error
        return to_answer(response, time.monotonic())

    def _listen(self, step: Listen) -> None:
        self.close()
        asked: Any = self._wire.request(step.call)
        try:
            request = self._http.build_request(**asked, timeout=httpx_timeout(step.max_silence))
            self._response = response = self._http.send(request, stream=True)
            if response.status_code != httpx.codes.OK:
                response.read()
                self.close()
                raise error_from_answer(to_answer(response, time.monotonic()))
        except httpx.HTTPError as error:
            raise no_response_error(step.call, error) from error
        self._chunks, self._events = response.iter_bytes(), EventStream()

    def _next(self) -> JsonObject | None:
        with suppress(httpx.HTTPError, httpx.StreamError, StopIteration):  # an end like any other
            while not self._events.ready:
                self._events.feed(next(self._chunks))
        return self._events.ready.popleft() if self._events.ready else None
