"""One operator process: what it starts, in which order, and in which order it stops.

Start: pods, Leases and queues, then all jobs, and only then their watch, deadlines, writes and
schedules. A replica that has not finished this, or whose watches are silent, does not lead. Stop:
nothing new is started, running work is finished, leadership is released.
"""

import asyncio
import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import structlog

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob_operator.cache.adapters import InformerStore
from asyncjob_operator.components import Components
from asyncjob_operator.controllers.job_informer import (
    JobWatch,
    SilentWatchDetector,
    WatchLag,
    load_jobs,
)
from asyncjob_operator.informers import Informers
from asyncjob_operator.kube.clock import current_time, monotonic
from asyncjob_operator.kube.preflight import POLICIES_NOT_READABLE, Findings
from asyncjob_operator.loops import (
    MAX_WATCH_PAUSE,
    resync_namespace,
    run_deadlines,
    run_policy_checks,
    run_queue_status,
    run_recovery_summary,
    run_resync,
    run_retention,
    run_stale_worker_collection,
    run_unserved_queue_events,
)
from asyncjob_operator.queues import Queues
from asyncjob_operator.settings import Settings
from asyncjob_operator.startup_checks import wait_for_job_api
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.containment import Activity, ObjectKind, object_ref
from asyncjob_operator.telemetry.loop_health import HealthMonitor, LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()

DRAIN_SECONDS: Final = 3.0
STUCK_SECONDS: Final = 60.0
CHECKS_PER_WORKER_TIMEOUT: Final = 4
MIN_WORKER_CHECK_INTERVAL: Final = 0.5
ELECTION_LOOP: Final = "election"
DEADLINE_LOOP: Final = "deadlines"


class LeaderElection(Protocol):
    """The election, or what stands in for it."""

    def leads(self) -> bool:
        """Return whether this replica may act."""

    async def wait_until_elected(self) -> None:
        """Wait until it may."""

    async def run(self, check_fitness: Callable[[], str]) -> None:
        """Take part until cancelled; `check_fitness` says what keeps this replica from leading."""

    async def release(self) -> None:
        """Hand over."""


class Operator:
    """Runs until told to stop; `restore_signals` undoes that kopf takes over the process's."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leader_election: LeaderElection,
        metrics: OperatorMetrics,
        restore_signals: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._session = session
        self._leader_election = leader_election
        self._metrics = metrics
        self._restore_signals = restore_signals
        self._components = Components(settings, session, leader_election, metrics)
        self._health = HealthMonitor(settings.silence_limit, monotonic)
        self._health.loop(DEADLINE_LOOP, STUCK_SECONDS)
        self._tasks = TaskSupervisor(settings.backoff_initial, settings.backoff_max, self._health)
        self._informers = Informers(
            session, settings.watched_namespaces, self._tasks, self._components.containment
        )
        self._queues = Queues(
            settings,
            session,
            cache=self._components.job_controller.queues,
            containment=self._components.containment,
            metrics=metrics,
            health=self._health,
        )
        self._listed_namespaces: set[str | None] = set()
        self._silence_detector = SilentWatchDetector()
        self._watch_lag = WatchLag(current_time)
        self._job_watch = JobWatch(
            session, self._on_job_event, self._resync_namespace, self._on_watch_progress
        )
        metrics.watch_lag.set_function(self._watch_lag.seconds)
        self._synced = False
        self._may_remove_workers = False
        self._findings = Findings()
        self._known_policy_problems: list[str] = []

    async def run(self, findings: Findings, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then stop in good order."""
        self._log_start()
        self._findings = findings
        recovery = self._settings.options.recovery
        may_remove = findings.allows("list", "leases") and findings.allows("delete", "leases")
        self._may_remove_workers = self._settings.worker_timeout > 0 and may_remove
        self._known_policy_problems = findings.missing_policies or [
            line for line in findings.warnings if line == POLICIES_NOT_READABLE
        ]
        try:
            self._tasks.start(ELECTION_LOOP, self._run_election)
            listed = self._queues.start(self._tasks, self._restore_signals)
            listed += self._informers.start(
                self._components.job_controller, findings, recovery=recovery
            )
            self._tasks.start("jobs", lambda pulse: self._list_and_start(listed, pulse))
            await stop.wait()
        finally:
            await self._stop()

    def check_liveness(self) -> str:
        """Return which loop has stopped turning: a new start of the process may help against that.

        Nothing else does: a loop whose requests fail still turns, and would after a new start.
        """
        return self._health.stalled()

    def check_readiness(self) -> str:
        """Return what is wrong until all jobs are listed, and later while a watch is silent."""
        if not self._synced:
            return "jobs are not listed yet"
        return (
            self._health.without_progress(
                [
                    *self._job_watch_names(),
                    *self._queues.names,
                    *self._informers.names,
                    *self._components.cron_jobs.names,
                ]
            )
            or self.check_liveness()
        )

    def check_fitness(self) -> str:
        """Return what keeps this replica from leading.

        One silent watch of many does not: no other replica sees more of a namespace that is out of
        reach, and all the others go on.
        """
        if not self._synced:
            return "jobs are not listed yet"
        if self._health.all_without_progress(self._job_watch_names()):
            return self._health.without_progress(self._job_watch_names())
        return self.check_liveness()

    async def refresh_metrics(self) -> None:
        """Count what takes a while to count, before somebody reads the metrics."""
        if self._synced:
            await self._components.job_stats.refresh()

    async def _run_election(self, health: LoopHealth) -> None:
        def check_fitness() -> str:
            health.tick()
            return self.check_fitness()

        await self._leader_election.run(check_fitness)

    def _job_watch_names(self) -> list[str]:
        return [_job_watch_name(namespace) for namespace in self._settings.watched_namespaces]

    def _on_watch_progress(self, namespace: str | None) -> None:
        self._health.loop(_job_watch_name(namespace)).tick()

    def _on_namespace_resynced(self, namespace: str | None) -> None:
        """Take that a comparison has seen what the watch should have: that is as good."""
        self._health.loop(_job_watch_name(namespace)).progressed()

    async def _list_and_start(self, stores: list[InformerStore], health: LoopHealth) -> None:
        """List all jobs once everything that bears on them is known, then begin to act."""
        for scope in stores:
            with health.idle():  # each has a pulse of its own
                await scope.synced.wait()
        with freeze_gc():
            for namespace in self._settings.watched_namespaces:
                if namespace in self._listed_namespaces:
                    continue
                loaded = await load_jobs(
                    self._session, namespace, self._components.job_controller, health.tick
                )
                self._listed_namespaces.add(namespace)
                self._job_watch.resume_from(namespace, loaded.version)
                log.info("jobs listed", namespace=namespace, count=loaded.count)
        self._synced = True
        self._metrics.synced.set(1)
        self._start_loops()
        with health.idle():
            await asyncio.Event().wait()

    def _start_loops(self) -> None:
        settings, parts, metrics, start = (
            self._settings,
            self._components,
            self._metrics,
            self._tasks.start,
        )
        start("dispatch", parts.job_reconcilers.run)
        start("admission", parts.admission_reconcilers.run)
        start("notices", parts.events.run)
        leadership = self._leader_election
        start("report", lambda pulse: run_recovery_summary(parts.recovery_summary, pulse))
        start(
            DEADLINE_LOOP,
            lambda pulse: run_deadlines(parts.job_controller, metrics, pulse),
            metrics.recovery_errors.inc,
        )
        start("comparison", self._run_resync)
        start(
            "queue numbers",
            lambda pulse: run_queue_status(parts.queue_status, leadership, pulse),
        )
        start(
            "queues served",
            lambda pulse: run_unserved_queue_events(parts.unserved_queue_events, leadership, pulse),
        )
        start("policies", self._check_policies)
        if self._may_remove_workers:
            pause = max(
                settings.worker_timeout / CHECKS_PER_WORKER_TIMEOUT, MIN_WORKER_CHECK_INTERVAL
            )
            start(
                "workers",
                lambda pulse: run_stale_worker_collection(
                    parts.stale_workers, leadership, pause, pulse
                ),
            )
        if settings.retention:
            interval = settings.retention_interval
            start(
                "retention",
                lambda pulse: run_retention(parts.retention, leadership, interval, pulse),
            )
        self._components.cron_jobs.start(self._tasks, self._findings)
        self._start_job_watches()

    def _start_job_watches(self) -> None:
        failed = self._metrics.watch_restarts.inc
        for namespace in self._settings.watched_namespaces:
            run = functools.partial(self._watch_jobs, namespace)
            self._tasks.start(_job_watch_name(namespace), run, failed, MAX_WATCH_PAUSE)

    async def _watch_jobs(self, namespace: str | None, health: LoopHealth) -> None:
        with health.idle():
            await wait_for_job_api(self._session)
        await self._job_watch.run(namespace)

    async def _resync_namespace(self, namespace: str | None) -> str:
        parts, metrics = self._components, self._metrics
        version = (
            await resync_namespace(self._session, namespace, parts.job_controller, metrics)
        ).version
        self._on_watch_progress(namespace)
        return version

    async def _check_policies(self, health: LoopHealth) -> None:
        await run_policy_checks(
            self._session, self._known_policy_problems, self._settings.resync_interval, health
        )

    def _on_job_event(self, kind: str, obj: JsonObject) -> None:
        self._metrics.watch_events.inc()
        self._silence_detector.events += 1
        if kind == "ADDED":
            with self._components.containment.guard(
                object_ref(ObjectKind.JOB, obj), Activity.MEASURE
            ):
                self._watch_lag.observe_created(obj)
        if kind == "DELETED":
            self._components.job_controller.on_delete_event(obj)
        else:
            self._components.job_controller.on_update(obj, live=True)
        self._components.job_controller.watch_position.observe(obj)

    async def _run_resync(self, health: LoopHealth) -> None:
        settings, observer = self._settings, self._components.job_controller
        await run_resync(
            self._session,
            settings.watched_namespaces,
            observer,
            metrics=self._metrics,
            interval=settings.resync_interval,
            on_resync=self._on_resync,
            on_namespace=self._on_namespace_resynced,
            health=health,
        )

    def _on_resync(self, repaired: int) -> None:
        if self._silence_detector.is_silent(repaired):
            log.warning("watch stalled, restarting it", missed=repaired)
            self._metrics.watch_restarts.inc()
            self._start_job_watches()

    async def _stop(self) -> None:
        log.info("stopping")
        await self._tasks.stop(except_for=ELECTION_LOOP)
        await asyncio.gather(
            self._components.job_reconcilers.drain(DRAIN_SECONDS),
            self._components.admission_reconcilers.drain(DRAIN_SECONDS),
            self._components.cron_jobs.reconcilers.drain(DRAIN_SECONDS),
        )
        await self._tasks.stop()
        await self._leader_election.release()
        self._components.recovery_summary.report()
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


def _job_watch_name(namespace: str | None) -> str:
    return f"watch of jobs in {namespace or 'all namespaces'}"


YOUNG_GENERATION_THRESHOLD: Final = 10_000
"""New objects before the collector looks at them, where Python itself takes 700."""


@contextmanager
def freeze_gc() -> Iterator[None]:
    """Collect nothing while all jobs are listed, and leave what there is then out for good.

    Views of jobs have no cycles: reference counts alone free them. To walk through all of them but
    once would hold the event loop, for 60 ms with a hundred thousand objects. If the list fails,
    the collector is on as before.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
        gc.set_threshold(YOUNG_GENERATION_THRESHOLD, *gc.get_threshold()[1:])
    finally:
        gc.enable()
