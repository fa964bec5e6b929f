"""How many requests at once, and for how long each."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError

_PROBES = frozenset({"/healthz", "/readyz"})


class Limited:
    """Serves an app within bounds. A stream of events, once begun, is neither counted nor timed."""

    def __init__(self, app: ASGIApp, *, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises RefusedError where there is no room, or no time left."""
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        if self._running >= self._most:
            raise RefusedError(kinds.BUSY, retry_after=1.0)
        await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        turn, limit = _Turn(self), asyncio.timeout(self._seconds)
        try:
            async with limit:
                await self._app(scope, receive, turn.noting(send, limit))
        except TimeoutError:
            if not limit.expired() or turn.begun:
                raise
            raise RefusedError(kinds.TIMED_OUT, retry_after=1.0) from None
        finally:
            turn.end()

    def count(self, by: int) -> None:
        """Note that so many more are running."""
        self._running += by


class _Turn:
    """One request's share of the bounds."""

    def __init__(self, limited: Limited) -> None:
        self.begun = False
        self._limited = limited
        self._counted = True
        limited.count(1)

    def end(self) -> None:
        """Make room for another."""
        if self._counted:
            self._counted = False
            self._limited.count(-1)

    def noting(self, send: Send, limit: asyncio.Timeout) -> Send:
        """Return what sends, and lets a stream go on for ever."""

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.begun = True
                if _is_stream(message):
                    limit.reschedule(None)
                    self.end()
            await send(message)

        return note


def _is_stream(message: Message) -> bool:
    headers = dict(message.get("headers", ()))
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))
