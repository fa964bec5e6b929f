"""The gateway as a process: connection, caches, ports, and the server in the midst of them."""

import asyncio
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

import structlog
from prometheus_client import start_http_server

from asyncjob.instruments import Samples
from asyncjob.kube import KubeSession, load_access
from asyncjob.metrics import Spec, gateway
from asyncjob_gateway.app import serve_with
from asyncjob_gateway.auth.access import Access, OwnRights, Reviews
from asyncjob_gateway.auth.tokens import Authenticator, Open, Tokens
from asyncjob_gateway.cache.namespace import NamespaceView
from asyncjob_gateway.context import AppContext, State
from asyncjob_gateway.events.streams import Streams
from asyncjob_gateway.limits.bodies import Bodies
from asyncjob_gateway.limits.connections import Connections, Patience
from asyncjob_gateway.limits.descriptors import room_for
from asyncjob_gateway.server import serve as serve_app
from asyncjob_gateway.settings import Settings
from asyncjob_gateway.telemetry.metrics import Metrics, Reading

log = structlog.get_logger()

FIELD_MANAGER = "asyncjob-gateway"
CONNECTIONS = 64
WATCHES = 3
"""Of each namespace; they have connections of their own, and count among the descriptors only."""

TAKING_SECONDS = 30.0
"""Who takes nothing of an answer, or of a stream, for so long is hung up on."""


async def serve(settings: Settings) -> None:
    """Run the gateway until SIGTERM or SIGINT; raises UnsafeSettingsError before anything."""
    settings.check()
    access, metrics = await load_access(settings.kubeconfig), Metrics()
    names = settings.namespaces or (access.namespace,)
    connections = _connections(settings, own=CONNECTIONS + WATCHES * len(names))
    async with KubeSession(
        access,
        field_manager=FIELD_MANAGER,
        connections=CONNECTIONS,
        observer=metrics.api_request,
    ) as session:
        views = {name: NamespaceView(name) for name in names}
        context = make_context(settings, session, views, metrics)
        with _metrics_served(settings, context.metrics):
            await _run(context, connections)
    log.info("stopped")


def make_context(
    settings: Settings,
    session: KubeSession,
    views: Mapping[str, NamespaceView],
    metrics: Metrics,
) -> AppContext:
    """Return what all routes work with."""
    metrics.read(_readings(views))
    return AppContext(
        settings=settings,
        session=session,
        authenticator=_authenticator(settings, session),
        access=_access(settings, session),
        views=views,
        default=next(iter(views)),
        streams=Streams(
            settings.max_streams, settings.max_streams_per_caller, settings.heartbeat, metrics
        ),
        metrics=metrics,
        bodies=Bodies(settings.body_timeout),
        state=State(),
    )


def _connections(settings: Settings, own: int) -> Connections:
    """Return the register of callers' connections, as many as there are file descriptors for."""
    room = room_for(settings.max_connections, own)
    if room < settings.max_connections:
        log.warning("file descriptors allow fewer connections", connections=room)
    patience = Patience(room, head=settings.header_timeout, taking=TAKING_SECONDS)
    return Connections(patience, time.monotonic)


async def _run(context: AppContext, connections: Connections) -> None:
    """Serve, with the caches kept up to date; a cache that fails takes the process along."""
    async with asyncio.TaskGroup() as group:
        keepers = [
            group.create_task(view.keep(context.session, context.metrics.watch_begun))
            for view in context.views.values()
        ]
        await serve_app(serve_with(context), context, connections)
        for keeper in keepers:
            keeper.cancel()


def _authenticator(settings: Settings, session: KubeSession) -> Authenticator:
    if settings.open:
        return Open()
    return Tokens(
        session, settings.audiences, settings.auth_cache, settings.auth_rate, time.monotonic
    )


def _access(settings: Settings, session: KubeSession) -> Access:
    if settings.open:
        return OwnRights(session)
    return Reviews(session, settings.auth_cache, settings.auth_rate, time.monotonic)


def _readings(views: Mapping[str, NamespaceView]) -> Mapping[Spec, Reading]:
    def jobs() -> Samples:
        return {(name,): len(view.jobs) for name, view in views.items()}

    def synced() -> Samples:
        return {(name,): float(view.synced) for name, view in views.items()}

    return {gateway.CACHE_JOBS: jobs, gateway.CACHE_SYNCED: synced}


@contextmanager
def _metrics_served(settings: Settings, metrics: Metrics) -> Generator[None]:
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
