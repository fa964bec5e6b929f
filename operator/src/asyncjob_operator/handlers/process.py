"""The operator as a process: connection, ports, signals, and the operator in the midst of them."""

import asyncio
import signal
from collections.abc import Callable, Coroutine

import structlog

from asyncjob.kube import KubeSession, load_access
from asyncjob_operator.handlers.http import health_routes, metrics_routes, serving
from asyncjob_operator.handlers.operator import Leadership, Operator
from asyncjob_operator.handlers.readiness import asked, wait_until_fit
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.kube.election import AlwaysElected, Elector
from asyncjob_operator.kube.preflight import Findings, preflight
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

FIELD_MANAGER = "asyncjob-operator"
CONNECTIONS = 48


async def check(settings: Settings) -> Findings:
    """Return what would keep the operator from working."""
    access = await load_access(settings.kubeconfig)
    async with KubeSession(access, field_manager=FIELD_MANAGER) as session:
        return await preflight(session, asked(settings, access.namespace))


async def serve(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    take_signals = _signals(stop)
    take_signals()
    access, metrics = await load_access(settings.kubeconfig), Metrics()
    async with (
        KubeSession(
            access,
            field_manager=FIELD_MANAGER,
            connections=CONNECTIONS,
            observer=metrics.request,
        ) as session,
        KubeSession(access, field_manager=FIELD_MANAGER, connections=2) as election_session,
    ):
        leadership = _leadership(settings, election_session)
        operator = Operator(settings, session, leadership, metrics, take_signals)
        async with (
            serving(settings.metrics_port, metrics_routes(metrics, operator.prepare_metrics)),
            serving(settings.health_port, health_routes(operator.alive, operator.ready)),
        ):
            findings = await _unless(stop, wait_until_fit(session, settings))
            if findings:
                await operator.run(findings, stop)
    log.info("stopped")


def _leadership(settings: Settings, session: KubeSession) -> Leadership:
    if not settings.leader_elect:
        return AlwaysElected()
    namespace = settings.lease_namespace or session.access.namespace
    return Elector(session, namespace, settings.lease_name, settings.identity)


def _signals(stop: asyncio.Event) -> Callable[[], None]:
    loop = asyncio.get_running_loop()

    def take() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    return take


async def _unless(stop: asyncio.Event, work: Coroutine[None, None, Findings]) -> Findings | None:
    """Return what the work returns, or None if the stop comes first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()
