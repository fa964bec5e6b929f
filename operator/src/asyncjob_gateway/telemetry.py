"""What the gateway reports about itself.

Metrics, the log context of a request, and the outermost middleware, which assigns the request id
and writes one access log line. Query strings, bodies and headers are not logged, because they may
hold secrets; metric labels are bounded.
"""

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from asyncjob.errors import AsyncJobError
from asyncjob.kube.informer import OpenedWatchCounter, WatchObserver
from asyncjob.metrics import MetricSpec, gateway
from asyncjob.metrics.prometheus import MetricSource, SourceCollector, counter, gauge, histogram
from asyncjob.tracing.context import normalize_traceparent, trace_id_of
from asyncjob_gateway import problem_types
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.problems import problem_response, to_refused_error


def bind_log_context(*, job: str | None = None, trace: str | None = None) -> None:
    """Name what is given; `trace` is a `traceparent`."""
    named = {"job": job, "trace_id": trace_id_of(trace)}
    structlog.contextvars.bind_contextvars(**{key: text for key, text in named.items() if text})


class GatewayMetrics:
    """One set of metrics, in a registry of its own."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.in_flight = gauge(gateway.IN_FLIGHT, registry)
        self.streams = gauge(gateway.STREAMS, registry)
        self._requests = counter(gateway.REQUESTS, registry)
        self._seconds = histogram(gateway.REQUEST_SECONDS, registry)
        self._resyncs = counter(gateway.STREAM_RESYNCS, registry)
        self._submissions = counter(gateway.SUBMISSIONS, registry)
        self._watches = counter(gateway.WATCH_STARTS, registry)
        self._api_requests = counter(gateway.API_REQUESTS, registry)
        self._api_seconds = histogram(gateway.API_REQUEST_SECONDS, registry)

    def count_request(self, method: str, route: str, code: int, seconds: float | None) -> None:
        """Count a request; `seconds` is None for a stream."""
        self._requests.labels(method, route, str(code)).inc()
        if seconds is not None:
            self._seconds.labels(method, route).observe(seconds)

    def count_submission(self, outcome: str) -> None:
        """Count a submission."""
        self._submissions.labels(outcome).inc()

    def count_resync(self) -> None:
        """Count a follower that has to list again."""
        self._resyncs.inc()

    def watch_observer(self, watch: str) -> WatchObserver:
        """Return what counts each time that this watch is opened."""
        return OpenedWatchCounter(self._watches.labels(watch).inc)

    def observe_api_request(self, method: str, code: int, seconds: float) -> None:
        """Count a request to the API server; the observer of a session."""
        self._api_requests.labels(method, str(code)).inc()
        self._api_seconds.labels(method).observe(seconds)

    def register_sources(self, sources: Mapping[MetricSpec, MetricSource]) -> None:
        """Show what the sources say whenever somebody asks."""
        self.registry.register(SourceCollector(sources))


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
                refusal = RefusedError(problem_types.INTERNAL)
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
