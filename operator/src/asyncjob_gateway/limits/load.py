"""How many requests at once, and for how long each."""

import asyncio

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError

log = structlog.get_logger()

_PROBES = frozenset({"/healthz", "/readyz"})
_TURN = "turn"


class Limited:
    """Serves an app within bounds.

    A request takes one of the places once it can be worked on: its caller is known and its body is
    there. Whoever lets the gateway wait for either takes none. A stream of events, once begun, is
    neither counted nor timed.
    """

    def __init__(self, app: ASGIApp, *, most: int, seconds: float) -> None:
        self._app = app
        self._most = most
        self._seconds = seconds
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises RefusedError where there is no time left."""
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        turn, limit = Turn(self), asyncio.timeout(self._seconds)
        state = scope.setdefault("state", {})
        state[_TURN] = turn
        try:
            async with limit:
                await self._app(scope, receive, turn.noting(send, limit))
        except TimeoutError:
            if not limit.expired():
                raise
            if not turn.answered:
                raise RefusedError(kinds.TIMED_OUT, retry_after=1.0) from None
            log.info("answer not taken in time")
            state["hang_up"]()
        finally:
            turn.end()

    def take(self) -> None:
        """Take a place; raises RefusedError where there is none."""
        if self._running >= self._most:
            raise RefusedError(kinds.BUSY, retry_after=1.0)
        self._running += 1

    def give_back(self) -> None:
        """Make room for another."""
        self._running -= 1


class Turn:
    """One request's share of the bounds."""

    def __init__(self, limited: Limited) -> None:
        self.answered = False
        self._limited = limited
        self._counted = False

    def begin(self) -> None:
        """Take a place; raises RefusedError where there is none."""
        if not self._counted:
            self._limited.take()
            self._counted = True

    def end(self) -> None:
        """Make room for another."""
        if self._counted:
            self._counted = False
            self._limited.give_back()

    def noting(self, send: Send, limit: asyncio.Timeout) -> Send:
        """Return what sends, and lets a stream go on for ever."""

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answered = True
                if _is_stream(message):
                    limit.reschedule(None)
                    self.end()
            await send(message)

        return note


def begin(request: Request) -> None:
    """Count a request from now on: who asks is known, and its body is there.

    Raises RefusedError where as many are under way as there may be.
    """
    turn: Turn = request.state.turn
    turn.begin()


def _is_stream(message: Message) -> bool:
    headers = dict(message.get("headers", ()))
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))
