"""The operator as a process: connections, ports, signals, leader election, and the operator inside.

Also the HTTP server for health probes and metrics, each on a port of its own.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from asyncjob.kube import KubeSession, load_access
from asyncjob_operator.kube.leader_election import AlwaysLeader, LeaderElector
from asyncjob_operator.kube.preflight import Findings, preflight
from asyncjob_operator.operator import LeaderElection, Operator
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import required_permissions, wait_for_prerequisites
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()

FIELD_MANAGER = "asyncjob-operator"
MAX_CONNECTIONS = 48


async def check(settings: Settings) -> Findings:
    """Return what would keep the operator from working."""
    access = await load_access(settings.kubeconfig)
    async with KubeSession(access, field_manager=FIELD_MANAGER) as session:
        return await preflight(session, required_permissions(settings, access.namespace))


async def serve(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    take_signals = _signal_installer(stop)
    take_signals()
    access, metrics = await load_access(settings.kubeconfig), OperatorMetrics()
    async with (
        KubeSession(
            access,
            field_manager=FIELD_MANAGER,
            connections=MAX_CONNECTIONS,
            observer=metrics.observe_request,
        ) as session,
        KubeSession(access, field_manager=FIELD_MANAGER, connections=2) as election_session,
    ):
        leadership = _leader_election(settings, election_session)
        operator = Operator(settings, session, leadership, metrics, take_signals)
        async with (
            serve_http(settings.metrics_port, metrics_routes(metrics, operator.refresh_metrics)),
            serve_http(
                settings.health_port,
                health_routes(operator.check_liveness, operator.check_readiness),
            ),
        ):
            findings = await _run_unless_stopped(stop, wait_for_prerequisites(session, settings))
            if findings:
                await operator.run(findings, stop)
    log.info("stopped")


def _leader_election(settings: Settings, session: KubeSession) -> LeaderElection:
    if not settings.leader_elect:
        return AlwaysLeader()
    namespace = settings.lease_namespace or session.access.namespace
    return LeaderElector(session, namespace, settings.lease_name, settings.identity)


def _signal_installer(stop: asyncio.Event) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def take() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    return take


async def _run_unless_stopped(
    stop: asyncio.Event, work: Coroutine[None, None, Findings]
) -> Findings | None:
    """Return what the work returns, or None if the stop comes first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()


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
