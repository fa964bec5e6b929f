"""What one operator process holds: connections, ports, leader election, and the operator inside.

Also the HTTP server for health probes and metrics, each on a port of its own.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from asyncjob.errors import PortTakenError
from asyncjob.kube import ClusterAccess, KubeSession, load_access
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.kopf_session import KopfSession
from asyncjob_operator.kube.leader_election import AlwaysLeader, LeaderElector
from asyncjob_operator.kube.preflight import Findings, preflight
from asyncjob_operator.operator import LeaderElection, Operator
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import required_permissions, wait_for_prerequisites
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()

FIELD_MANAGER = "asyncjob-operator"
MAX_CONNECTIONS = 48
"""Requests at a time: a full pool of reconciles (`MAX_CONCURRENT_RECONCILES`), and half as many
beside it for the other pools, lists and Events."""


async def check(settings: Settings) -> Findings:
    """Return what would keep the operator from working."""
    access = await load_access(settings.kubeconfig)
    async with KubeSession(access, field_manager=FIELD_MANAGER) as session:
        return await preflight(session, required_permissions(settings, access.namespace))


class OperatorRuntime:
    """What one process runs: built and started by `start`, taken down by `stop`."""

    def __init__(self, access: ClusterAccess, settings: Settings) -> None:
        self.settings = settings
        self.kopf_session = KopfSession(access)
        self._access = access
        self._open = AsyncExitStack()
        self._operator: Operator | None = None

    @property
    def operator(self) -> Operator:
        """Return the operator, once `start` has returned."""
        if self._operator is None:
            raise RuntimeError("the operator has not been started")
        return self._operator

    async def start(self) -> None:
        """Open connections and ports, wait for what the operator needs, and start its loops.

        The ports are open while it waits. Whatever ends the wait, a signal included, closes all.
        """
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise

    async def stop(self) -> None:
        """Stop the loops in good order and close everything."""
        try:
            await self.operator.stop()
        finally:
            await self._close()

    async def _start(self) -> None:
        settings, metrics, enter = self.settings, OperatorMetrics(), self._open.enter_async_context
        session = await enter(
            KubeSession(
                self._access,
                field_manager=FIELD_MANAGER,
                connections=MAX_CONNECTIONS,
                observer=metrics.observe_request,
            )
        )
        # Elections have connections of their own: they must not wait behind anything.
        election_session = await enter(
            KubeSession(self._access, field_manager=FIELD_MANAGER, connections=2)
        )
        leadership = _leader_election(settings, election_session)
        operator = Operator(settings, session, leadership, metrics, self.kopf_session)
        await enter(
            serve_http(
                settings.metrics_port,
                metrics_routes(metrics, operator.refresh_metrics),
                "--metrics-port",
            )
        )
        await enter(
            serve_http(
                settings.health_port,
                health_routes(operator.check_liveness, operator.check_readiness),
                "--health-port",
            )
        )
        operator.start(await wait_for_prerequisites(session, settings))
        self._operator = operator

    async def _close(self) -> None:
        await self.kopf_session.close()
        await self._open.aclose()
        log.info("stopped")


def _leader_election(settings: Settings, session: KubeSession) -> LeaderElection:
    if not settings.leader_elect:
        return AlwaysLeader()
    namespace = settings.lease_namespace or session.access.namespace
    return LeaderElector(
        session, namespace, settings.lease_name, settings.identity, clock=monotonic
    )


HttpHandler = Callable[[web.Request], Awaitable[web.Response]]
ProbeCheck = Callable[[], str]
"""Returns what is wrong, or an empty text."""


@asynccontextmanager
async def serve_http(
    port: int, routes: dict[str, HttpHandler], option: str
) -> AsyncGenerator[None]:
    """Serve while inside; not at all on port 0. Raises PortTakenError, which names the option."""
    if not port:
        yield
        return
    app = web.Application()
    app.add_routes([web.get(path, handler) for path, handler in routes.items()])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, port=port, shutdown_timeout=1.0).start()
        except OSError as error:
            way_out = f"choose another {option}, or {option}=0 for none"
            raise PortTakenError.of(error, " and ".join(routes), "all", port, way_out) from error
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
