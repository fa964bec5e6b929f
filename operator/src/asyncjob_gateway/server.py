"""The HTTP server, and how it stops: readiness first, then streams, then what is under way.

uvicorn's own handling of signals is left out: the order of a stop is decided here.
"""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager

import structlog
import uvicorn
from starlette.types import ASGIApp

from asyncjob_gateway.context import AppContext
from asyncjob_gateway.limits.connections import ConnectionTable
from asyncjob_gateway.limits.protocol import protocol_class
from asyncjob_gateway.settings import GatewaySettings

log = structlog.get_logger()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to whoever runs the server."""
        yield


async def serve_until_stopped(
    app: ASGIApp, context: AppContext, connections: ConnectionTable
) -> None:
    """Serve until SIGTERM or SIGINT, and a little longer."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = _Server(_uvicorn_config(app, context.settings, connections))
    async with asyncio.TaskGroup() as group:
        group.create_task(_run_server(server, stop, context.settings, connections))
        await stop.wait()
        await _stop(server, context)


async def _run_server(
    server: uvicorn.Server,
    stop: asyncio.Event,
    settings: GatewaySettings,
    connections: ConnectionTable,
) -> None:
    log.info("listening", host=settings.host, port=settings.port, open=settings.open)
    sweeping = asyncio.create_task(connections.run())
    try:
        await server.serve()
    finally:
        sweeping.cancel()
        stop.set()  # it could not listen, say


async def _stop(server: uvicorn.Server, context: AppContext) -> None:
    context.state.stopping = True
    log.info("stopping", drain=context.settings.drain, grace=context.settings.grace)
    if not server.should_exit and server.started:
        await asyncio.sleep(context.settings.drain)  # until nobody sends requests here any more
    context.streams.stopping.set()
    for view in context.caches.values():
        view.changes.wake_all()
    server.should_exit = True


def _uvicorn_config(
    app: ASGIApp, settings: GatewaySettings, connections: ConnectionTable
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=protocol_class(connections),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
