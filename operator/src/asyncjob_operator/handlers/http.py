"""Health and metrics over HTTP, each on a port of its own."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from asyncjob_operator.telemetry.metrics import OperatorMetrics

HttpHandler = Callable[[web.Request], Awaitable[web.Response]]
ProbeCheck = Callable[[], str]
"""Returns what is wrong, or an empty text."""


@asynccontextmanager
async def serve_http(port: int, routes: dict[str, HttpHandler]) -> AsyncGenerator[None]:
    """Serve while inside; not at all on port 0."""
    if not port:
        yield
        return
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port, shutdown_timeout=1.0).start()
        yield
    finally:
        await runner.cleanup()


def metrics_routes(
    metrics: OperatorMetrics, refresh: Callable[[], Awaitable[None]]
) -> dict[str, HttpHandler]:
    """Return `/metrics`; `refresh` is awaited each time before the metrics are read."""

    async def show(_request: web.Request) -> web.Response:
        await refresh()
        body = generate_latest(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return {"/metrics": show}


def health_routes(alive: ProbeCheck, ready: ProbeCheck) -> dict[str, HttpHandler]:
    """Return `/healthz` and `/readyz`: 200 and `ok`, or 503 and what is wrong."""
    return {"/healthz": _probe_handler(alive), "/readyz": _probe_handler(ready)}


def _probe_handler(check: ProbeCheck) -> HttpHandler:
    async def answer(_request: web.Request) -> web.Response:
        wrong = check()
        return web.Response(text=wrong or "ok", status=503 if wrong else 200)

    return answer
