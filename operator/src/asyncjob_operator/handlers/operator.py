"""One operator process: what it starts, in which order, and in which order it stops.

Start: election, then pods, Leases and queues, then all jobs, and only then their watch, deadlines,
writes and schedules. Stop: nothing new is begun, what has begun is finished, leadership is handed
over.
"""

import asyncio
import functools
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob_operator.handlers.following import Following
from asyncjob_operator.handlers.garbage import spare_what_stays
from asyncjob_operator.handlers.job_watch import JobWatch
from asyncjob_operator.handlers.loops import (
    LONGEST_BLIND,
    Heartbeat,
    compare_one,
    keep_checking,
    keep_comparing,
    keep_queue_reports,
    keep_queues_served,
    keep_reporting,
    keep_retention,
    keep_time,
    keep_workers,
)
from asyncjob_operator.handlers.parts import Parts
from asyncjob_operator.handlers.readiness import wait_until_served
from asyncjob_operator.handlers.settings import Settings
from asyncjob_operator.handlers.tasks import Tasks
from asyncjob_operator.handlers.watch_lag import WatchLag
from asyncjob_operator.handlers.watchdog import Watchdog
from asyncjob_operator.kube.clock import moment, monotonic
from asyncjob_operator.kube.policies import UNSEEN
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.observe.followers import Scope
from asyncjob_operator.observe.listing import load
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

DRAIN_SECONDS: Final = 3.0
STUCK_SECONDS: Final = 60.0
LOOKS_PER_TIMEOUT: Final = 4
SHORTEST_LOOK: Final = 0.5
ELECTION: Final = "election"


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
        self._tasks = Tasks(settings.backoff_initial, settings.backoff_max)
        self._heartbeat = Heartbeat()
        self._watchdog = Watchdog()
        self._lag = WatchLag(moment)
        self._watch = JobWatch(session, self._saw, self._compare_one)
        metrics.watch_lag.set_function(self._lag.seconds)
        self._synced = False
        self._may_remove_workers = False
        self._findings = Findings()
        self._said: list[str] = []

    async def run(self, findings: Findings, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then stop in good order."""
        self._log_start()
        self._findings = findings
        following = Following(self._session, self._settings.scopes, self._tasks)
        recovery = self._settings.options.recovery
        may_remove = findings.may("list", "leases") and findings.may("delete", "leases")
        self._may_remove_workers = self._settings.worker_timeout > 0 and may_remove
        self._said = findings.unguarded or [line for line in findings.warnings if line == UNSEEN]
        try:
            self._tasks.start(ELECTION, self._leadership.run)
            listed = following.start(self._parts.observer, findings, recovery=recovery)
            self._tasks.start("jobs", lambda: self._take_up(listed))
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

    async def prepare_metrics(self) -> None:
        """Count what takes a while to count, before somebody reads the metrics."""
        if self._synced:
            await self._parts.census.take()

    async def _take_up(self, listed: list[Scope]) -> None:
        """List all jobs once everything that bears on them is known, then begin to act."""
        for scope in listed:
            await scope.listed.wait()
        for namespace in self._settings.scopes:
            loaded = await load(self._session, namespace, self._parts.observer)
            self._watch.listed(namespace, loaded.version)
            log.info("jobs listed", namespace=namespace, count=loaded.count)
        spare_what_stays()
        self._synced = True
        self._metrics.synced.set(1)
        self._start_loops()
        await asyncio.Event().wait()

    def _start_loops(self) -> None:
        settings, parts, metrics, start = (
            self._settings,
            self._parts,
            self._metrics,
            self._tasks.start,
        )
        self._heartbeat.at = monotonic()
        start("dispatch", parts.dispatch.run)
        start("admission", parts.admission.run)
        start("notices", parts.notices.run)
        start("report", lambda: keep_reporting(parts.tally))
        start(
            "deadlines",
            lambda: keep_time(parts.observer, metrics, self._heartbeat),
            metrics.recovery_errors.inc,
        )
        start("comparison", self._compare)
        start("queue numbers", lambda: keep_queue_reports(parts.queue_reports, self._leadership))
        start("queues served", lambda: keep_queues_served(parts.desertion, self._leadership))
        start("policies", self._check_policies)
        if self._may_remove_workers:
            pause = max(settings.worker_timeout / LOOKS_PER_TIMEOUT, SHORTEST_LOOK)
            start("workers", lambda: keep_workers(parts.farewell, self._leadership, pause))
        if settings.retention:
            interval = settings.retention_interval
            start("retention", lambda: keep_retention(parts.sweep, self._leadership, interval))
        self._parts.crons.start(self._tasks, self._findings, self._retake_signals)
        self._start_watches()

    def _start_watches(self) -> None:
        failed = self._metrics.watch_restarts.inc
        for namespace in self._settings.scopes:
            run = functools.partial(self._watch_jobs, namespace)
            self._tasks.start(f"watch of jobs in {namespace}", run, failed, LONGEST_BLIND)

    async def _watch_jobs(self, namespace: str | None) -> None:
        await wait_until_served(self._session)
        await self._watch.run(namespace)

    async def _compare_one(self, namespace: str | None) -> str:
        parts, metrics = self._parts, self._metrics
        return (await compare_one(self._session, namespace, parts.observer, metrics)).version

    async def _check_policies(self) -> None:
        await keep_checking(self._session, self._said, self._settings.resync_interval)

    def _saw(self, kind: str, obj: JsonObject) -> None:
        self._metrics.events.inc()
        self._watchdog.events += 1
        if kind == "ADDED":
            self._lag.saw_new(obj)
        if kind == "DELETED":
            self._parts.observer.lost(text(child(obj, "metadata"), "uid"))
        else:
            self._parts.observer.saw(obj, live=True)

    async def _compare(self) -> None:
        settings, observer = self._settings, self._parts.observer
        await keep_comparing(
            self._session,
            settings.scopes,
            observer,
            metrics=self._metrics,
            interval=settings.resync_interval,
            compared=self._compared,
        )

    def _compared(self, repaired: int) -> None:
        if self._watchdog.is_silent(repaired):
            log.warning("the watch is silent and is started anew", missed=repaired)
            self._metrics.watch_restarts.inc()
            self._start_watches()

    async def _stop(self) -> None:
        log.info("stopping")
        await self._tasks.end(but=ELECTION)
        await asyncio.gather(
            self._parts.dispatch.drain(DRAIN_SECONDS),
            self._parts.admission.drain(DRAIN_SECONDS),
            self._parts.crons.dispatch.drain(DRAIN_SECONDS),
        )
        await self._tasks.end()
        await self._leadership.release()
        self._parts.tally.report()
        if self._settings.options.recovery:
            log.info("recovery stopped")

    def _log_start(self) -> None:
        options = self._settings.options
        if not options.recovery:
            log.info("recovery disabled")
            return
        log.info(
            "recovery enabled",
            resync_interval=self._settings.resync_interval,
            lease_margin=options.lease_margin,
            backoff_initial=self._settings.backoff_initial,
            backoff_max=self._settings.backoff_max,
        )
        log.info("recovery started", identity=self._settings.identity)
