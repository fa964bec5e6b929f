"""How many requests at once, with how large bodies, and for how long each."""

import asyncio
from typing import Final

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError

log = structlog.get_logger()

_PROBES = frozenset({"/healthz", "/readyz"})
_SLOT_KEY = "request_slot"

LARGE_BODY_BYTES: Final = 64 * 1024
"""Smaller bodies are not counted: even of `--max-requests` (256) that many bytes are 16 MiB."""

MAX_LARGE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of all large bodies that are worked on at once: parsed, each takes ten times as much."""


class LoadLimitMiddleware:
    """Serves an app within bounds.

    A request takes one of the slots once it can be worked on: its caller is known and its body is
    there. A caller who lets the gateway wait for either takes none. A stream of events, once begun,
    is neither counted nor timed.
    """

    def __init__(self, app: ASGIApp, *, max_requests: int, timeout: float) -> None:
        self._app = app
        self._max_requests = max_requests
        self._timeout = timeout
        self._running = 0
        self._large_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; raises RefusedError where there is no time left."""
        if scope["type"] != "http" or scope["path"] in _PROBES:
            await self._app(scope, receive, send)
            return
        slot, limit = RequestSlot(self), asyncio.timeout(self._timeout)
        state = scope.setdefault("state", {})
        state[_SLOT_KEY] = slot
        try:
            async with limit:
                await self._app(scope, receive, slot.wrap_send(send, limit))
        except TimeoutError:
            if not limit.expired():
                raise
            if not slot.response_started:
                raise RefusedError(problem_types.TIMED_OUT, retry_after=1.0) from None
            log.info("answer not taken in time")
            state["hang_up"]()
        finally:
            slot.release()

    def acquire(self, large_bytes: int = 0) -> None:
        """Take a slot, and the bytes of a large body; raises RefusedError where too few are free.

        One large body is always worked on, however large it is.
        """
        is_alone = not large_bytes or not self._large_bytes
        fits = is_alone or self._large_bytes + large_bytes <= MAX_LARGE_BYTES
        if self._running >= self._max_requests or not fits:
            raise RefusedError(problem_types.BUSY, retry_after=1.0)
        self._running += 1
        self._large_bytes += large_bytes

    def release(self, large_bytes: int = 0) -> None:
        """Give back what was taken."""
        self._running -= 1
        self._large_bytes -= large_bytes


class RequestSlot:
    """One request's share of the bounds."""

    def __init__(self, limiter: LoadLimitMiddleware) -> None:
        self.response_started = False
        self._limiter = limiter
        self._acquired = False
        self._large_bytes = 0

    def acquire(self, body_bytes: int = 0) -> None:
        """Take a slot; raises RefusedError where none is free."""
        if not self._acquired:
            large_bytes = body_bytes if body_bytes > LARGE_BODY_BYTES else 0
            self._limiter.acquire(large_bytes)
            self._acquired, self._large_bytes = True, large_bytes

    def release(self) -> None:
        """Give back what was taken."""
        if self._acquired:
            self._acquired = False
            self._limiter.release(self._large_bytes)

    def wrap_send(self, send: Send, limit: asyncio.Timeout) -> Send:
        """Return what sends, and lets a stream go on without end."""

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.response_started = True
                if _is_stream(message):
                    limit.reschedule(None)
                    self.release()
            await send(message)

        return note


def acquire_request_slot(request: Request, body_bytes: int = 0) -> None:
    """Count a request from now on: who asks is known, and its body is there.

    Raises RefusedError where as many are under way, or with as large bodies, as there may be.
    """
    slot: RequestSlot = request.state.request_slot
    slot.acquire(body_bytes)


def _is_stream(message: Message) -> bool:
    headers = dict(message.get("headers", ()))
    return bool(headers.get(b"content-type", b"").startswith(b"text/event-stream"))
