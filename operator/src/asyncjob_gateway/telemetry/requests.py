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
from asyncjob.tracing.context import normalize_traceparent
from asyncjob_gateway import kinds
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems.answers import problem_response
from asyncjob_gateway.problems.translate import to_refused_error
from asyncjob_gateway.telemetry.metrics import GatewayMetrics
from asyncjob_gateway.telemetry.naming import bind_log_context

log = structlog.get_logger()

REQUEST_ID_HEADER: Final = "X-Request-Id"
TRACEPARENT_HEADER: Final = "traceparent"
UNKNOWN_ROUTE: Final = "unknown"

_REQUEST_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_DEBUG_ONLY_PATHS: Final = frozenset({"/healthz", "/readyz"})


@dataclass(slots=True)
class _ResponseState:
    """What has been sent so far."""

    status: int = 0
    is_stream: bool = False


class AccessLogMiddleware:
    """Serves an app, and tells of every request."""

    def __init__(self, app: ASGIApp, metrics: GatewayMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id, sent, began = _request_id(scope), _ResponseState(), time.monotonic()
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        bind_log_context(trace=trace_context(scope))
        with self._metrics.in_flight.track_inprogress():
            await self._serve(scope, receive, _wrap_send(send, sent, request_id), sent)
        self._log_and_count(scope, sent, time.monotonic() - began)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, response: _ResponseState
    ) -> None:
        try:
            await self._app(scope, receive, send)
        except AsyncJobError as error:  # from a layer above the framework
            await problem_response(to_refused_error(error), scope["path"])(scope, receive, send)
        except Exception:  # the outermost layer: what nobody foresaw is logged and told as such
            log.exception("request failed")
            if not response.status:
                refusal = RefusedError(kinds.INTERNAL)
                await problem_response(refusal, scope["path"])(scope, receive, send)

    def _log_and_count(self, scope: Scope, response: _ResponseState, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
        self._metrics.count_request(
            method, route, response.status, None if response.is_stream else seconds
        )
        caller = scope.get("state", {}).get("caller")
        tell = log.debug if scope["path"] in _DEBUG_ONLY_PATHS else log.info
        tell(
            "request",
            method=method,
            route=route,
            path=scope["path"][:512],
            status=response.status,
            milliseconds=round(seconds * 1000, 1),
            caller=caller.username if caller else None,
        )


def trace_context(scope: Scope) -> str | None:
    """Return the W3C trace context that a request came with, None if it has none."""
    return normalize_traceparent(Headers(scope=scope).get(TRACEPARENT_HEADER))


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    return given if _REQUEST_ID_PATTERN.fullmatch(given) else uuid.uuid4().hex


def _wrap_send(send: Send, response: _ResponseState, request_id: str) -> Send:
    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID_HEADER] = request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
            response.status = message["status"]
            response.is_stream = headers.get("content-type", "").startswith("text/event-stream")
        await send(message)

    return note
