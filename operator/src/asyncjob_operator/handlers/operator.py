"""One operator process: what it starts, in which order, and in which order it stops.

Start: pods, Leases and queues, then all jobs, and only then their watch, deadlines, writes and
schedules. Nobody leads who has not got there, or whose watches have gone silent. Stop: nothing new
is begun, what has begun is finished, leadership is handed over.
"""

import asyncio
import functools
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob_operator.core.vitals import Pulse, Vitals
from asyncjob_operator.handlers.following import Following
from asyncjob_operator.handlers.garbage import spare_what_stays
from asyncjob_operator.handlers.job_watch import JobWatch
from asyncjob_operator.handlers.loops import (
    LONGEST_BLIND,
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
from asyncjob_operator.telemetry.containment import Doing, Kind, subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

DRAIN_SECONDS: Final = 3.0
STUCK_SECONDS: Final = 60.0
LOOKS_PER_TIMEOUT: Final = 4
SHORTEST_LOOK: Final = 0.5
ELECTION: Final = "election"
DEADLINES: Final = "deadlines"


class Leadership(Protocol):
    """The election, or what stands in for it."""

    def leads(self) -> bool:
        """Return whether this replica may act."""

    async def elected(self) -> None:
        """Wait until it may."""

    async def run(self, unfit: Callable[[], str]) -> None:
        """Take part until cancelled; `unfit` says what keeps this replica from leading."""

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
        self._vitals = Vitals(settings.silence_limit, monotonic)
        self._vitals.pulse(DEADLINES, STUCK_SECONDS)
        self._tasks = Tasks(settings.backoff_initial, settings.backoff_max, self._vitals)
        self._following = Following(session, settings.scopes, self._tasks, self._parts.containment)
        self._loaded: set[str | None] = set()
        self._watchdog = Watchdog()
        self._lag = WatchLag(moment)
        self._watch = JobWatch(session, self._saw, self._compare_one, self._watch_moved)
        metrics.watch_lag.set_function(self._lag.seconds)
        self._synced = False
        self._may_remove_workers = False
        self._findings = Findings()
        self._said: list[str] = []

    async def run(self, findings: Findings, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then stop in good order."""
        self._log_start()
        self._findings = findings
        recovery = self._settings.options.recovery
        may_remove = findings.may("list", "leases") and findings.may("delete", "leases")
        self._may_remove_workers = self._settings.worker_timeout > 0 and may_remove
        self._said = findings.unguarded or [line for line in findings.warnings if line == UNSEEN]
        try:
            self._tasks.start(ELECTION, self._take_part)
            listed = self._following.start(self._parts.observer, findings, recovery=recovery)
            self._tasks.start("jobs", lambda pulse: self._take_up(listed, pulse))
            await stop.wait()
        finally:
            await self._stop()

    def alive(self) -> str:
        """Return which loop has stopped turning: a new start of the process may help against that.

        Nothing else does: a loop whose requests fail still turns, and would after a new start.
        """
        return self._vitals.stuck()

    def ready(self) -> str:
        """Return what is wrong until all jobs are listed, and later while a watch is silent."""
        if not self._synced:
            return "jobs are not listed yet"
        return self._vitals.silent([*self._watches(), *self._following.watches]) or self.alive()

    def unfit(self) -> str:
        """Return what keeps this replica from leading.

        One silent watch of many does not: no other replica sees more of a namespace that is out of
        reach, and all the others go on.
        """
        if not self._synced:
            return "jobs are not listed yet"
        if self._vitals.all_silent(self._watches()):
            return self._vitals.silent(self._watches())
        return self.alive()

    async def prepare_metrics(self) -> None:
        """Count what takes a while to count, before somebody reads the metrics."""
        if self._synced:
            await self._parts.census.take()

    async def _take_part(self, pulse: Pulse) -> None:
        def unfit() -> str:
            pulse.beat()
            return self.unfit()

        await self._leadership.run(unfit)

    def _watches(self) -> list[str]:
        return [_watch_of(namespace) for namespace in self._settings.scopes]

    def _watch_moved(self, namespace: str | None) -> None:
        self._vitals.pulse(_watch_of(namespace)).beat()

    def _seen(self, namespace: str | None) -> None:
        """Take that a comparison has seen what the watch should have: that is as good."""
        self._vitals.pulse(_watch_of(namespace)).moved()

    async def _take_up(self, listed: list[Scope], pulse: Pulse) -> None:
        """List all jobs once everything that bears on them is known, then begin to act."""
        for scope in listed:
            with pulse.idle():  # each has a pulse of its own
                await scope.listed.wait()
        with spare_what_stays():
            for namespace in self._settings.scopes:
                if namespace in self._loaded:
                    continue
                loaded = await load(self._session, namespace, self._parts.observer, pulse.beat)
                self._loaded.add(namespace)
                self._watch.listed(namespace, loaded.version)
                log.info("jobs listed", namespace=namespace, count=loaded.count)
        self._synced = True
        self._metrics.synced.set(1)
        self._start_loops()
        with pulse.idle():
            await asyncio.Event().wait()

    def _start_loops(self) -> None:
        settings, parts, metrics, start = (
            self._settings,
            self._parts,
            self._metrics,
            self._tasks.start,
        )
        start("dispatch", parts.dispatch.run)
        start("admission", parts.admission.run)
        start("notices", parts.notices.run)
        leadership = self._leadership
        start("report", lambda pulse: keep_reporting(parts.tally, pulse))
        start(
            DEADLINES,
            lambda pulse: keep_time(parts.observer, metrics, pulse),
            metrics.recovery_errors.inc,
        )
        start("comparison", self._compare)
        start(
            "queue numbers",
            lambda pulse: keep_queue_reports(parts.queue_reports, leadership, pulse),
        )
        start("queues served", lambda pulse: keep_queues_served(parts.desertion, leadership, pulse))
        start("policies", self._check_policies)
        if self._may_remove_workers:
            pause = max(settings.worker_timeout / LOOKS_PER_TIMEOUT, SHORTEST_LOOK)
            start("workers", lambda pulse: keep_workers(parts.farewell, leadership, pause, pulse))
        if settings.retention:
            interval = settings.retention_interval
            start(
                "retention",
                lambda pulse: keep_retention(parts.sweep, leadership, interval, pulse),
            )
        self._parts.crons.start(self._tasks, self._findings, self._retake_signals)
        self._start_watches()

    def _start_watches(self) -> None:
        failed = self._metrics.watch_restarts.inc
        for namespace in self._settings.scopes:
            run = functools.partial(self._watch_jobs, namespace)
            self._tasks.start(_watch_of(namespace), run, failed, LONGEST_BLIND)

    async def _watch_jobs(self, namespace: str | None, pulse: Pulse) -> None:
        with pulse.idle():
            await wait_until_served(self._session)
        await self._watch.run(namespace)

    async def _compare_one(self, namespace: str | None) -> str:
        parts, metrics = self._parts, self._metrics
        version = (await compare_one(self._session, namespace, parts.observer, metrics)).version
        self._watch_moved(namespace)
        return version

    async def _check_policies(self, pulse: Pulse) -> None:
        await keep_checking(self._session, self._said, self._settings.resync_interval, pulse)

    def _saw(self, kind: str, obj: JsonObject) -> None:
        self._metrics.events.inc()
        self._watchdog.events += 1
        if kind == "ADDED":
            with self._parts.containment.guard(subject(Kind.JOB, obj), Doing.MEASURE):
                self._lag.saw_new(obj)
        if kind == "DELETED":
            self._parts.observer.deleted(obj)
        else:
            self._parts.observer.saw(obj, live=True)
        self._parts.observer.progress.saw(obj)

    async def _compare(self, pulse: Pulse) -> None:
        settings, observer = self._settings, self._parts.observer
        await keep_comparing(
            self._session,
            settings.scopes,
            observer,
            metrics=self._metrics,
            interval=settings.resync_interval,
            compared=self._compared,
            seen=self._seen,
            pulse=pulse,
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


def _watch_of(namespace: str | None) -> str:
    return f"watch of jobs in {namespace or 'all namespaces'}"
