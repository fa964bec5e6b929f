"""The gateway as a process.

It connects to the API server, keeps the caches up to date, and serves HTTP with uvicorn until
SIGTERM. The order of a stop is decided here, not by uvicorn: first readiness, then event streams,
then the requests under way.
"""

import asyncio
import gc
import resource
import signal
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

import structlog
import uvicorn
from prometheus_client import start_http_server
from starlette.types import ASGIApp

from asyncjob.errors import AsyncJobError, PortTakenError
from asyncjob.kube import KubeSession, load_access
from asyncjob.metrics import MetricSpec, gateway
from asyncjob.metrics.prometheus import MetricSource, Samples
from asyncjob_gateway.app import make_asgi_app
from asyncjob_gateway.auth.authentication import (
    Authenticator,
    OpenAuthenticator,
    TokenAuthenticator,
)
from asyncjob_gateway.auth.authorization import Authorizer, OpenAuthorizer, ReviewAuthorizer
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.context import AppContext, AppState
from asyncjob_gateway.limits.bodies import BodyReader
from asyncjob_gateway.limits.connections import ConnectionLimits, ConnectionTable, protocol_class
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_gateway.streams import StreamLimiter
from asyncjob_gateway.telemetry import GatewayMetrics

SPARE_DESCRIPTORS: Final = 128
"""For logs, libraries, the metrics port, and connections that are being closed."""


def reserve_descriptors(connections: int, outgoing: int) -> int:
    """Let the process have enough descriptors; return how many connections there can be.

    `outgoing` are the connections that it opens itself. Only the soft limit can be raised.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + outgoing + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return max(1, min(connections, needed - outgoing - SPARE_DESCRIPTORS))


log = structlog.get_logger()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the program around the server."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Raise PortTakenError, where uvicorn would end the process."""
        try:
            await super().startup(sockets)
        except SystemExit as end:
            if not isinstance(end.__context__, OSError):
                raise
            where = (self.config.host, self.config.port, "choose another --port or --host")
            raise PortTakenError.of(end.__context__, "jobs", *where) from end.__context__


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


FIELD_MANAGER = "asyncjob-gateway"
API_SERVER_CONNECTIONS = 64
"""Requests to the API server at the same time; further ones wait. It bounds what the gateway asks
of the API server at once, however many callers it has."""

WATCHES_PER_NAMESPACE = 4
"""Of each namespace; they have connections of their own, and count among the descriptors only."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Who takes nothing of an answer, or of a stream, for this long is hung up on."""


async def run_gateway(settings: GatewaySettings) -> None:
    """Run the gateway until SIGTERM or SIGINT.

    Raises ConfigError before anything, and AsyncJobError where a port cannot be opened or a cache
    cannot go on.
    """
    settings.check()
    access, metrics = await load_access(settings.kubeconfig), GatewayMetrics()
    names = settings.namespaces or (access.namespace,)
    connections = _make_connections(
        settings, outgoing=API_SERVER_CONNECTIONS + WATCHES_PER_NAMESPACE * len(names)
    )
    async with KubeSession(
        access,
        field_manager=FIELD_MANAGER,
        connections=API_SERVER_CONNECTIONS,
        observer=metrics.observe_api_request,
    ) as session:
        views = {name: NamespaceCache(name) for name in names}
        context = make_context(settings, session, views, metrics)
        with _metrics_server(settings, context.metrics):
            # What the imports made stays: without this each full collection would hold the event
            # loop for the time that it takes to go over all of it.
            gc.collect()
            gc.freeze()
            try:
                await _serve_with_caches(context, connections)
            except BaseExceptionGroup as group:
                if known := _first_known(group):
                    raise known from group
                raise
    log.info("stopped")


def _first_known(group: BaseExceptionGroup[BaseException]) -> AsyncJobError | None:
    """Return an error of ours, if nothing else failed."""
    known, others = group.split(AsyncJobError)
    error: BaseException | None = known
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, AsyncJobError) and not others else None


def make_context(
    settings: GatewaySettings,
    session: KubeSession,
    caches: Mapping[str, NamespaceCache],
    metrics: GatewayMetrics,
) -> AppContext:
    """Return what all routes work with."""
    metrics.register_sources(_cache_metrics(caches))
    return AppContext(
        settings=settings,
        session=session,
        authenticator=_make_authenticator(settings, session),
        authorizer=_make_authorizer(settings, session),
        caches=caches,
        default_namespace=next(iter(caches)),
        streams=StreamLimiter(
            settings.max_streams, settings.max_streams_per_caller, settings.heartbeat, metrics
        ),
        metrics=metrics,
        body_reader=BodyReader(settings.body_timeout),
        state=AppState(),
    )


def _make_connections(settings: GatewaySettings, outgoing: int) -> ConnectionTable:
    """Return the register of callers' connections, as many as there are file descriptors for."""
    most = reserve_descriptors(settings.max_connections, outgoing)
    if most < settings.max_connections:
        log.warning("file descriptors allow fewer connections", connections=most)
    limits = ConnectionLimits(
        most, head_timeout=settings.header_timeout, write_timeout=WRITE_TIMEOUT_SECONDS
    )
    return ConnectionTable(limits, time.monotonic)


async def _serve_with_caches(context: AppContext, connections: ConnectionTable) -> None:
    """Serve, with the caches kept up to date; a cache that fails takes the process along."""
    async with asyncio.TaskGroup() as group:
        background_tasks = [
            group.create_task(view.run(context.session, context.metrics.watch_observer))
            for view in context.caches.values()
        ]
        await serve_until_stopped(make_asgi_app(context), context, connections)
        for task in background_tasks:
            task.cancel()


def _make_authenticator(settings: GatewaySettings, session: KubeSession) -> Authenticator:
    if settings.open:
        return OpenAuthenticator()
    return TokenAuthenticator(
        session, settings.audiences, settings.auth_cache, settings.auth_rate, time.monotonic
    )


def _make_authorizer(settings: GatewaySettings, session: KubeSession) -> Authorizer:
    if settings.open:
        return OpenAuthorizer(session)
    return ReviewAuthorizer(session, settings.auth_cache, settings.auth_rate, time.monotonic)


def _cache_metrics(caches: Mapping[str, NamespaceCache]) -> Mapping[MetricSpec, MetricSource]:
    def jobs() -> Samples:
        return {(name,): len(view.jobs) for name, view in caches.items()}

    def synced() -> Samples:
        return {(name,): float(view.synced) for name, view in caches.items()}

    return {gateway.CACHE_JOBS: jobs, gateway.CACHE_SYNCED: synced}


@contextmanager
def _metrics_server(settings: GatewaySettings, metrics: GatewayMetrics) -> Generator[None]:
    """Serve /metrics on a port of its own while inside: it is not for callers of the API."""
    if not settings.metrics_port:
        yield
        return
    host, port = settings.metrics_host, settings.metrics_port
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except OSError as error:
        way_out = "choose another --metrics-port or --metrics-host, or --metrics-port=0 for none"
        raise PortTakenError.of(error, "/metrics", host, port, way_out) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
