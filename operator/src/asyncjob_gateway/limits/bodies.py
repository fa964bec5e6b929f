"""Bodies of requests: read up to a limit and no further, and waited for only so long.

Who sends slowly keeps others from nothing: a body that is not there at once is waited for in one of
the places of its sender, of which each has a share, and all who are not known have one together.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import Request

from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError

ONE_JOB: Final = 2 * 1024 * 1024
"""Bytes of a body that has one job: a payload's 1 MiB, and as much for escapes and white space."""

AT_ONCE_SECONDS: Final = 0.5
"""A body that is there after so long takes no place: most follow their head within moments."""

PLACES: Final = 64
SHARE: Final = 16
"""Bodies that are waited for at once, in all and of one sender."""

_DIGITS: Final = 18
"""Python refuses to read numbers of thousands of digits, with an error of its own."""

NOBODY: Final = ""
"""Whoever is not known."""


class Bodies:
    """Receives bodies. `seconds` is how long one may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: Counter[str] = Counter()

    async def receive(self, request: Request, most: int, sender: str = NOBODY) -> bytes:
        """Return the body, of so many bytes at most; raises RefusedError (400, 408, 413, 429, 503).

        One that by its own word is too long is not read at all.
        """
        arriving = _Arriving(request, most)
        try:
            async with asyncio.timeout(min(AT_ONCE_SECONDS, self._seconds)):
                return await arriving.whole()
        except TimeoutError:
            pass
        with self._place(sender):
            try:
                async with asyncio.timeout(max(0.0, self._seconds - AT_ONCE_SECONDS)):
                    return await arriving.whole()
            except TimeoutError:
                detail = f"the body was not there after {self._seconds:g} seconds"
                raise RefusedError(kinds.SLOW_BODY, detail) from None

    @contextmanager
    def _place(self, sender: str) -> Iterator[None]:
        if self._waiting.total() >= PLACES:
            raise RefusedError(kinds.BUSY, "too many bodies are being waited for", retry_after=1.0)
        if self._waiting[sender] >= SHARE:
            who = sender or "whoever has not signed in"
            detail = f"{SHARE} bodies of {who} are being waited for already"
            raise RefusedError(kinds.THROTTLED, detail, retry_after=1.0)
        self._waiting[sender] += 1
        try:
            yield
        finally:
            self._waiting[sender] -= 1
            if not self._waiting[sender]:
                del self._waiting[sender]


class _Arriving:
    """A body, as far as it is there. Giving up waiting for it loses none of it."""

    def __init__(self, request: Request, most: int) -> None:
        self._receive = request.receive
        self._most = most
        self._found = bytearray()
        length = request.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > _DIGITS or int(length) > most):
            raise self._too_long()

    async def whole(self) -> bytes:
        """Return the body once it is there."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(kinds.MALFORMED, "the body broke off")
            self._found += message.get("body", b"")
            if len(self._found) > self._most:
                raise self._too_long()
            more = message.get("more_body", False)
        return bytes(self._found)

    def _too_long(self) -> RefusedError:
        return RefusedError(kinds.TOO_LARGE, f"the body has more than {self._most} bytes")
