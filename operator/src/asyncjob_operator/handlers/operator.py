"""One operator process: what it starts, in which order, and in which order it stops.

Start: election, then pods, Leases and queues, then all jobs, and only then deadlines, writes and
kopf. Stop: nothing new is begun, what has begun is finished, leadership is handed over.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import structlog

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.backoff import Backoff
from asyncjob.kube.follow import follow
from asyncjob.names import COMPONENT_LABEL, QUEUES, WORKER_COMPONENT, collection
from asyncjob_operator.handlers.kopf_wiring import registry, watch_jobs
from asyncjob_operator.handlers.loops import (
    Heartbeat,
    keep_comparing,
    keep_reporting,
    keep_retention,
    keep_time,
)
from asyncjob_operator.handlers.parts import Parts
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.handlers.supervise import supervise
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.observe.followers import (
    Keeper,
    LeaseKeeper,
    PodKeeper,
    QueueKeeper,
    Scope,
)
from asyncjob_operator.observe.listing import load
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

DRAIN_SECONDS: Final = 3.0
STUCK_SECONDS: Final = 60.0
WORKERS_ONLY: Final = {"labelSelector": f"{COMPONENT_LABEL}={WORKER_COMPONENT}"}


class Leadership(Protocol):
    """The election, or what stands in for it."""

    def leads(self) -> bool:
        """Return whether this replica may act."""

    async def elected(self) -> None:
        """Wait until it may."""

    async def run(self) -> None:
        """Take part until cancelled."""

    async def release(self) -> None:
        """Hand over."""


class Operator:
    """Runs until told to stop; `retake_signals` undoes that kopf takes over the process's."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leadership: Leadership,
        metrics: Metrics,
        retake_signals: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._session = session
        self._leadership = leadership
        self._metrics = metrics
        self._retake_signals = retake_signals
        self._parts = Parts(settings, session, leadership, metrics)
        self._heartbeat = Heartbeat()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._synced = False

    async def run(self, findings: Findings, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then stop in good order."""
        self._log_start()
        try:
            self._start("election", self._leadership.run)
            listed = self._follow_all(findings)
            self._start("jobs", lambda: self._take_up(listed))
            await stop.wait()
        finally:
            await self._stop()

    def alive(self) -> str:
        """Return what is wrong if the deadline loop has stopped turning."""
        silent = monotonic() - self._heartbeat.at if self._synced else 0.0
        return f"no turn of the loop for {silent:.0f} s" if silent > STUCK_SECONDS else ""

    def ready(self) -> str:
        """Return what is wrong until all jobs have been listed."""
        return "" if self._synced else "jobs are not listed yet"

    def _start(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        backoff = Backoff(self._settings.backoff_initial, self._settings.backoff_max)
        coroutine = supervise(name, run, backoff, failed)
        self._tasks[name] = asyncio.create_task(coroutine, name=name)

    def _follow_all(self, findings: Findings) -> list[Scope]:
        observer, recovery = self._parts.observer, self._settings.options.recovery
        scopes = self._follow("queues", collection, QUEUES, QueueKeeper(observer.queues))
        if recovery and findings.may("list", "pods") and findings.may("watch", "pods"):
            pods = self._follow("pods", _core, "pods", PodKeeper(observer.workers))
            scopes += pods
            observer.workers.pods_known = True
        if recovery and findings.may("list", "leases") and findings.may("watch", "leases"):
            scopes += self._follow("leases", _leases, "leases", LeaseKeeper(observer.workers))
        return scopes

    def _follow(
        self, name: str, path: Callable[[str | None, str], str], plural: str, keeper: Keeper
    ) -> list[Scope]:
        scopes = []
        params = {} if plural == QUEUES else WORKERS_ONLY
        for namespace in self._settings.scopes:
            scope = Scope(keeper, namespace)
            target = path(namespace, plural)

            async def run(target: str = target, scope: Scope = scope) -> None:
                await follow(self._session, target, scope, params)

            self._start(f"{name} {namespace or ''}".rstrip(), run)
            scopes.append(scope)
        return scopes

    async def _take_up(self, listed: list[Scope]) -> None:
        """List all jobs once everything that bears on them is known, then begin to act."""
        for scope in listed:
            await scope.listed.wait()
        for namespace in self._settings.scopes:
            count = await load(self._session, namespace, self._parts.observer)
            log.info("jobs listed", namespace=namespace, count=count)
        self._synced = True
        self._metrics.synced.set(1)
        self._start_loops()
        await asyncio.Event().wait()

    def _start_loops(self) -> None:
        settings, parts, metrics = self._settings, self._parts, self._metrics
        self._start("dispatch", parts.dispatch.run)
        self._start("notices", parts.notices.run)
        self._start("report", lambda: keep_reporting(parts.tally))
        self._start(
            "deadlines",
            lambda: keep_time(parts.observer, metrics, self._heartbeat),
            metrics.recovery_errors.inc,
        )
        self._start(
            "comparison",
            lambda: keep_comparing(
                self._session, settings.scopes, parts.observer, metrics, settings.resync_interval
            ),
        )
        if settings.retention:
            self._start(
                "retention",
                lambda: keep_retention(parts.sweep, self._leadership, settings.retention_interval),
            )
        self._start("kopf", self._watch, metrics.watch_restarts.inc)

    async def _watch(self) -> None:
        handlers = registry(self._session.access, self._saw)
        await watch_jobs(handlers, self._settings.namespaces, self._retake_signals)

    def _saw(self, kind: str | None, obj: JsonObject) -> None:
        self._metrics.events.inc()
        if kind == "DELETED":
            self._parts.observer.lost(text(child(obj, "metadata"), "uid"))
        else:
            self._parts.observer.saw(obj, live=kind is not None)

    async def _stop(self) -> None:
        log.info("stopping")
        election = self._tasks.pop("election", None)
        await _end(list(self._tasks.values()))
        await self._parts.dispatch.drain(DRAIN_SECONDS)
        await _end([election] if election else [])
        await self._leadership.release()
        self._parts.tally.report()
        log.info("recovery stopped")

    def _log_start(self) -> None:
        options = self._settings.options
        if options.recovery:
            log.info(
                "recovery enabled",
                resync_interval=self._settings.resync_interval,
                lease_margin=options.lease_margin,
                backoff_initial=self._settings.backoff_initial,
                backoff_max=self._settings.backoff_max,
            )
            log.info("recovery started", identity=self._settings.identity)
        else:
            log.info("recovery disabled")


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _core(namespace: str | None, plural: str) -> str:
    return f"/api/v1/namespaces/{namespace}/{plural}" if namespace else f"/api/v1/{plural}"


def _leases(namespace: str | None, plural: str) -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/coordination.k8s.io/v1{scope}/{plural}"
