"""Bodies of requests: read up to a limit and no further, and waited for a limited time.

Who sends slowly keeps others from nothing: a body that is not there at once is waited for in one of
the places of its sender, of which each has a share, and all who are not known have one together.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import Request

from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError

MAX_SINGLE_JOB_BYTES: Final = 2 * 1024 * 1024
"""Bytes of a body that has one job: a payload's 1 MiB, and as much for escapes and white space."""

FREE_WAIT_SECONDS: Final = 0.5
"""A body that is there after this long takes no place: most follow their head within moments."""

MAX_SLOW_BODIES: Final = 64
MAX_SLOW_BODIES_PER_SENDER: Final = 16
"""Bodies that are waited for at once, in all and of one sender: it takes four to keep others out.
What has arrived of each is held in memory."""

_MAX_LENGTH_DIGITS: Final = 18
"""Python refuses to read numbers of thousands of digits, with an error of its own."""

ANONYMOUS: Final = ""
"""All callers that are not known."""


class BodyReader:
    """Receives bodies. `timeout` is how many seconds one may take."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._waiting: Counter[str] = Counter()

    async def read(self, request: Request, max_bytes: int, sender: str = ANONYMOUS) -> bytes:
        """Return the body, of `max_bytes` at most; raises RefusedError (400, 408, 413, 429, 503).

        One that by its own word is too long is not read at all.
        """
        arriving = _IncomingBody(request, max_bytes)
        try:
            async with asyncio.timeout(min(FREE_WAIT_SECONDS, self._timeout)):
                return await arriving.read_all()
        except TimeoutError:
            pass
        with self._slow_body_slot(sender):
            try:
                async with asyncio.timeout(max(0.0, self._timeout - FREE_WAIT_SECONDS)):
                    return await arriving.read_all()
            except TimeoutError:
                detail = f"the body was not received within {self._timeout:g} seconds"
                raise RefusedError(problem_types.SLOW_BODY, detail) from None

    @contextmanager
    def _slow_body_slot(self, sender: str) -> Iterator[None]:
        if self._waiting.total() >= MAX_SLOW_BODIES:
            raise RefusedError(
                problem_types.BUSY, "too many bodies are being waited for", retry_after=1.0
            )
        if self._waiting[sender] >= MAX_SLOW_BODIES_PER_SENDER:
            who = sender or "unauthenticated callers"
            detail = f"{MAX_SLOW_BODIES_PER_SENDER} requests of {who} are still sending their body"
            raise RefusedError(problem_types.THROTTLED, detail, retry_after=1.0)
        self._waiting[sender] += 1
        try:
            yield
        finally:
            self._waiting[sender] -= 1
            if not self._waiting[sender]:
                del self._waiting[sender]


class _IncomingBody:
    """A body, as far as it is there. Giving up waiting for it loses none of it."""

    def __init__(self, request: Request, max_bytes: int) -> None:
        self._receive = request.receive
        self._max_bytes = max_bytes
        self._received = bytearray()
        length = request.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > _MAX_LENGTH_DIGITS or int(length) > max_bytes):
            raise self._too_large()

    async def read_all(self) -> bytes:
        """Return the body once it is there."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(problem_types.MALFORMED, "the body is incomplete")
            self._received += message.get("body", b"")
            if len(self._received) > self._max_bytes:
                raise self._too_large()
            more = message.get("more_body", False)
        return bytes(self._received)

    def _too_large(self) -> RefusedError:
        return RefusedError(
            problem_types.TOO_LARGE, f"the body has more than {self._max_bytes} bytes"
        )
