"""The gateway as a process: connection, caches, ports, and the server in the midst of them."""

import asyncio
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import structlog
from prometheus_client import start_http_server

from asyncjob.instruments import Samples
from asyncjob.kube import KubeSession, load_access
from asyncjob.metrics import MetricSpec, gateway
from asyncjob_gateway.app import make_asgi_app
from asyncjob_gateway.auth.access import Authorizer, OpenAuthorizer, ReviewAuthorizer
from asyncjob_gateway.auth.tokens import Authenticator, OpenAuthenticator, TokenAuthenticator
from asyncjob_gateway.cache.namespace import NamespaceCache
from asyncjob_gateway.context import AppContext, AppState
from asyncjob_gateway.events.streams import StreamLimiter
from asyncjob_gateway.limits.bodies import BodyReader
from asyncjob_gateway.limits.connections import ConnectionLimits, ConnectionTable
from asyncjob_gateway.limits.descriptors import reserve_descriptors
from asyncjob_gateway.server import serve_until_stopped
from asyncjob_gateway.settings import GatewaySettings
from asyncjob_gateway.telemetry.metrics import GatewayMetrics, MetricSource

log = structlog.get_logger()

FIELD_MANAGER = "asyncjob-gateway"
API_SERVER_CONNECTIONS = 64
WATCHES_PER_NAMESPACE = 3
"""Of each namespace; they have connections of their own, and count among the descriptors only."""

WRITE_TIMEOUT_SECONDS = 30.0
"""Who takes nothing of an answer, or of a stream, for so long is hung up on."""


async def run_gateway(settings: GatewaySettings) -> None:
    """Run the gateway until SIGTERM or SIGINT; raises UnsafeSettingsError before anything."""
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
            await _serve_with_caches(context, connections)
    log.info("stopped")


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
    room = reserve_descriptors(settings.max_connections, outgoing)
    if room < settings.max_connections:
        log.warning("file descriptors allow fewer connections", connections=room)
    patience = ConnectionLimits(
        room, head_timeout=settings.header_timeout, write_timeout=WRITE_TIMEOUT_SECONDS
    )
    return ConnectionTable(patience, time.monotonic)


async def _serve_with_caches(context: AppContext, connections: ConnectionTable) -> None:
    """Serve, with the caches kept up to date; a cache that fails takes the process along."""
    async with asyncio.TaskGroup() as group:
        keepers = [
            group.create_task(view.run(context.session, context.metrics.watch_counter))
            for view in context.caches.values()
        ]
        await serve_until_stopped(make_asgi_app(context), context, connections)
        for keeper in keepers:
            keeper.cancel()


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
    server, thread = start_http_server(
        settings.metrics_port, settings.metrics_host, metrics.registry
    )
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
