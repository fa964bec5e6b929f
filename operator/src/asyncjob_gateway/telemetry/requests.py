"""Around every request: its id, one line in the access log, and no error that says too much.

The outermost layer. Query strings, bodies and headers are not logged: they may hold secrets.
"""

import re
import time
import uuid
from dataclasses import dataclass
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asyncjob.errors import AsyncJobError
from asyncjob.tracing.context import carried
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems.answers import answer
from asyncjob_gateway.problems.translate import refusal_of
from asyncjob_gateway.telemetry.metrics import Metrics
from asyncjob_gateway.telemetry.naming import name_in_log

log = structlog.get_logger()

REQUEST_ID: Final = "X-Request-Id"
TRACEPARENT: Final = "traceparent"
UNKNOWN_ROUTE: Final = "unknown"

_GIVEN_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_QUIET: Final = frozenset({"/healthz", "/readyz"})


@dataclass(slots=True)
class _Sent:
    """What has been sent so far."""

    status: int = 0
    streams: bool = False


class Observed:
    """Serves an app, and tells of every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, sent, began = _id(scope), _Sent(), time.monotonic()
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        name_in_log(trace=trace_context(scope))
        with self._metrics.in_flight.track_inprogress():
            await self._serve(scope, receive, _noting(send, sent, request_id), sent)
        self._tell(scope, sent, time.monotonic() - began)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, sent: _Sent) -> None:
        try:
            await self._app(scope, receive, send)
        except AsyncJobError as error:  # from a layer above the framework
            await answer(refusal_of(error), scope["path"])(scope, receive, send)
        except Exception:  # the outermost layer: what nobody foresaw is logged and told as such
            log.exception("request failed")
            if not sent.status:
                refusal = RefusedError(kinds.INTERNAL)
                await answer(refusal, scope["path"])(scope, receive, send)

    def _tell(self, scope: Scope, sent: _Sent, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.answered(method, route, sent.status, None if sent.streams else seconds)
        caller = scope.get("state", {}).get("caller")
        tell = log.debug if scope["path"] in _QUIET else log.info
        tell(
            "request",
            method=method,
            route=route,
            path=scope["path"][:512],
            status=sent.status,
            milliseconds=round(seconds * 1000, 1),
            caller=caller.username if caller else None,
        )


def trace_context(scope: Scope) -> str | None:
    """Return the W3C trace context that a request came with, None if it has none."""
    return carried(Headers(scope=scope).get(TRACEPARENT))


def _id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex


def _noting(send: Send, sent: _Sent, request_id: str) -> Send:
    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID] = request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
            sent.status = message["status"]
            sent.streams = headers.get("content-type", "").startswith("text/event-stream")
        await send(message)

    return note
