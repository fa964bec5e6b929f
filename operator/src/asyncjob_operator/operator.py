"""One operator process: what it starts, in which order, and in which order it stops.

Start: pods, Leases and queues, then all jobs, and only then their watch, deadlines, writes and
cron jobs. A replica that has not finished this, or whose watches are silent, does not lead. Stop:
nothing new is started, running work is finished, leadership is released.
"""

import asyncio
import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, Protocol

import structlog

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES
from asyncjob_operator.cache.adapters import InformerStore
from asyncjob_operator.components import Components
from asyncjob_operator.controllers.job_informer import (
    JobWatch,
    freeze_gc,
    load_jobs,
)
from asyncjob_operator.controllers.workqueue import Leadership
from asyncjob_operator.informers import watch_name
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.kopf_session import KopfSession, WatchedCollection
from asyncjob_operator.kube.preflight import POLICIES_NOT_READABLE, Findings
from asyncjob_operator.kube.version_times import VersionTimes
from asyncjob_operator.loops import (
    MAX_WATCH_PAUSE,
    UnmeasuredRequeues,
    resync_namespace,
    run_policy_checks,
    run_queue_status,
    run_recovery_summary,
    run_requeue_timer,
    run_resync,
    run_retention,
    run_stale_worker_collection,
    run_unserved_queue_events,
    run_version_samples,
)
from asyncjob_operator.settings import JobWatchSource, Settings
from asyncjob_operator.startup_checks import wait_for_job_api
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import HealthMonitor, LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import Activity, ObjectKind, object_ref

log = structlog.get_logger()

DRAIN_SECONDS: Final = 3.0
"""How long reconciles that have begun may take at the end. What is cut short, the next leader
decides again: every write is conditional."""

STUCK_SECONDS: Final = 60.0
"""The requeue timer turns every `MAX_SLEEP` seconds; one that has not for this long hangs."""

CHECKS_PER_WORKER_TIMEOUT: Final = 4
"""A silent worker's Lease is removed a quarter of the timeout late at most."""

MIN_WORKER_CHECK_INTERVAL: Final = 0.5
"""Each check lists all worker Leases: not more often, however short the timeout is."""

ELECTION_LOOP: Final = "election"
REQUEUE_TIMER: Final = "requeue timer"

_RESOURCE_TITLES: Final = {
    JOBS: "jobs",
    QUEUES: "queues",
    CRON_JOBS: "cron jobs",
    ARRAYS: "arrays",
}


class LeaderElection(Leadership, Protocol):
    """The election, or what stands in for it."""

    version_times: VersionTimes
    """The leader's samples, which outlive it where there is an election."""

    async def restore_version_times(self) -> None:
        """Take what an earlier leader has noted; before jobs are listed."""

    async def run(
        self, check_fitness: Callable[[], str], *, wakes_from_arrays: bool = True
    ) -> None:
        """Take part until cancelled.

        `check_fitness` says what keeps this replica from leading, `wakes_from_arrays` whether it
        may watch arrays, and so wakes jobs that wait for them.
        """

    async def release(self) -> None:
        """Hand over."""


class Operator:
    """Works between `start` and `stop`; a listener of kopf's watches."""

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        leader_election: LeaderElection,
        metrics: OperatorMetrics,
        kopf_session: KopfSession,
    ) -> None:
        self._settings = settings
        self._session = session
        self._leader_election = leader_election
        self._metrics = metrics
        self._kopf_session = kopf_session
        self._kopf_watches_jobs = settings.job_watch is JobWatchSource.KOPF
        self._components = Components(
            settings, session, leader_election, leader_election.version_times, metrics
        )
        self._health = HealthMonitor(settings.silence_limit, monotonic)
        self._health.loop(REQUEUE_TIMER, STUCK_SECONDS)
        self._tasks = TaskSupervisor(settings.backoff_initial, settings.backoff_max, self._health)
        self._idle_watches = ExitStack()
        self._listed_namespaces: set[str | None] = set()
        self._job_watch = JobWatch(
            session, self.on_job_event, self._resync_namespace, self._on_job_watch_progress
        )
        self._synced = False
        self._may_remove_workers = False
        self._findings = Findings()
        self._known_policy_problems: list[str] = []

    def start(self, findings: Findings) -> None:
        """Start all loops; from now on what kopf sees is taken."""
        self._log_start()
        self._findings = findings
        recovery = self._settings.options.recovery
        may_remove = findings.allows("list", "leases") and findings.allows("delete", "leases")
        self._may_remove_workers = self._settings.worker_timeout > 0 and may_remove
        self._known_policy_problems = findings.missing_policies or [
            line for line in findings.warnings if line == POLICIES_NOT_READABLE
        ]
        self._follow_kopf()
        self._tasks.start(ELECTION_LOOP, self._run_election)
        listed = self._components.kopf_collections[QUEUES].start(self._tasks)
        listed += self._components.informers.start(self._tasks, findings, recovery=recovery)
        self._tasks.start("jobs", lambda health: self._list_and_start(listed, health))

    async def stop(self) -> None:
        """Start nothing new, finish what is running, hand over the leadership."""
        log.info("stopping")
        await self._tasks.stop(except_for=ELECTION_LOOP)
        await asyncio.gather(
            self._components.job_reconcilers.drain(DRAIN_SECONDS),
            self._components.admission_reconcilers.drain(DRAIN_SECONDS),
            self._components.cron_job_reconcilers.drain(DRAIN_SECONDS),
            self._components.array_reconcilers.drain(DRAIN_SECONDS),
        )
        await self._tasks.stop()
        await self._leader_election.release()
        self._components.recovery_summary.report()
        if self._settings.options.recovery:
            log.info("recovery stopped")

    def on_queue_event(self, kind: str | None, obj: JsonObject) -> None:
        """Take what kopf has seen of an AsyncQueue; None: found in a list."""
        self._components.kopf_collections[QUEUES].on_event(kind, obj)

    def on_cron_job_event(self, kind: str | None, obj: JsonObject) -> None:
        """Take what kopf has seen of an AsyncCronJob; None: found in a list."""
        self._components.kopf_collections[CRON_JOBS].on_event(kind, obj)

    def on_array_event(self, kind: str | None, obj: JsonObject) -> None:
        """Take what kopf has seen of an AsyncArray; None: found in a list."""
        self._components.kopf_collections[ARRAYS].on_event(kind, obj)

    def on_job_event(self, kind: str | None, obj: JsonObject) -> None:
        """Take what a watch has seen of an AsyncJob, kopf's or our own; None: found in a list."""
        evaluator = self._components.job_evaluator
        if kind is None:
            evaluator.on_update(obj, just_changed=False)
            return
        self._metrics.watch_events.inc()
        self._components.silence_detector.events += 1
        if kind == "ADDED":
            with self._components.quarantine.guard(
                object_ref(ObjectKind.JOB, obj), Activity.MEASURE
            ):
                self._components.watch_lag.observe_created(obj)
        if kind == "DELETED":
            evaluator.on_delete_event(obj)
        else:
            evaluator.on_update(obj, just_changed=True)
        self._components.caches.watch_position.observe(obj)

    def on_watch_progress(self, watched: WatchedCollection) -> None:
        """Record that a watch of kopf's has received something, a bookmark included."""
        self._health.loop(_watch_name(watched.resource, watched.namespace)).tick()

    def on_relist(self, watched: WatchedCollection) -> None:
        """Resync with the cluster: kopf does not report what was deleted before it listed again."""
        self._metrics.watch_restarts.inc()
        if watched.resource == JOBS:
            self._components.job_resync_timer.trigger()
        else:
            self._components.kopf_collections[watched.resource].resync_now(watched.namespace)

    def check_liveness(self) -> str:
        """Return which loop makes no attempts any more: restarting the process may help.

        A loop whose requests fail still makes attempts; restarting would not help it.
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
                    *self._components.informers.names,
                    *self._kopf_watch_names(),
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

        await self._leader_election.run(
            check_fitness, wakes_from_arrays=may_follow_arrays(self._findings)
        )

    def _follow_kopf(self) -> None:
        """Register for what kopf's watches report; each of them ends only when kopf itself does."""
        namespaces = self._settings.watched_namespaces
        self._kopf_session.follow(self, self._kopf_resources(), namespaces)
        for name in self._kopf_watch_names():
            self._idle_watches.enter_context(self._health.loop(name).idle())

    def _kopf_resources(self) -> tuple[str, ...]:
        return (QUEUES, CRON_JOBS, ARRAYS, *((JOBS,) if self._kopf_watches_jobs else ()))

    def _kopf_watch_names(self) -> list[str]:
        """Return the watches of what may be seen."""
        return [
            _watch_name(resource, namespace)
            for resource in self._kopf_resources()
            if self._findings.allows("watch", resource) and self._findings.allows("list", resource)
            for namespace in self._settings.watched_namespaces
        ]

    def _job_watch_names(self) -> list[str]:
        return [_watch_name(JOBS, namespace) for namespace in self._settings.watched_namespaces]

    def _on_job_watch_progress(self, namespace: str | None) -> None:
        self._health.loop(_watch_name(JOBS, namespace)).tick()

    def _on_namespace_resynced(self, namespace: str | None) -> None:
        """Count a resync of the namespace as progress of its watch: both have seen all its jobs."""
        self._health.loop(_watch_name(JOBS, namespace)).progressed()

    async def _list_and_start(self, stores: list[InformerStore], health: LoopHealth) -> None:
        """List all jobs once everything that bears on them is known, then begin to act."""
        for scope in stores:
            with health.idle():  # each has a health of its own
                await scope.synced.wait()
        await self._leader_election.restore_version_times()
        with freeze_gc():
            for namespace in self._settings.watched_namespaces:
                if namespace in self._listed_namespaces:
                    continue
                loaded = await load_jobs(
                    self._session, namespace, self._components.job_evaluator, health.tick
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
        settings, components, start = self._settings, self._components, self._tasks.start
        # Arrays first: of those that are not known jobs that wait for them ask the API server.
        start_array_loops(components, self._tasks, self._findings)
        start("job reconcilers", components.job_reconcilers.run)
        start("admission reconcilers", components.admission_reconcilers.run)
        start("event recorder", components.events.run)
        leadership = self._leader_election
        start(
            "recovery summary",
            lambda health: run_recovery_summary(components.recovery_summary, health),
        )
        start(REQUEUE_TIMER, self._run_requeue_timer)
        start(
            "admission requeue timer",
            lambda health: run_requeue_timer(
                components.admission_delaying_queue,
                components.enqueue_admission,
                UnmeasuredRequeues(),
                health,
            ),
        )
        start("job resync", self._run_resync)
        start(
            "queue status",
            lambda health: run_queue_status(components.queue_status, leadership, health),
        )
        start(
            "unserved queues",
            lambda health: run_unserved_queue_events(
                components.unserved_queue_events, leadership, health
            ),
        )
        start("policies", self._check_policies)
        start(
            "version samples",
            lambda health: run_version_samples(
                self._session,
                settings.watched_namespaces[0],
                leadership,
                components.sample_version,
                health,
            ),
        )
        if self._may_remove_workers:
            pause = max(
                settings.worker_timeout / CHECKS_PER_WORKER_TIMEOUT, MIN_WORKER_CHECK_INTERVAL
            )
            start(
                "workers",
                lambda health: run_stale_worker_collection(
                    components.stale_workers, leadership, pause, health
                ),
            )
        if settings.retention:
            interval = settings.retention_interval
            start(
                "retention",
                lambda health: run_retention(components.retention, leadership, interval, health),
            )
        start_cron_job_loops(components, self._tasks, self._findings)
        self._start_job_watches()

    def _start_job_watches(self) -> None:
        """Start our own watches of jobs, or start them again; kopf's run already."""
        if self._kopf_watches_jobs:
            self._kopf_session.restart(JOBS)
            return
        for namespace in self._settings.watched_namespaces:
            run = functools.partial(self._watch_jobs, namespace)
            self._tasks.start(_watch_name(JOBS, namespace), run, MAX_WATCH_PAUSE)

    async def _watch_jobs(self, namespace: str | None, health: LoopHealth) -> None:
        with self._metrics.watch_restarts.count_exceptions():
            with health.idle():
                await wait_for_job_api(self._session)
            await self._job_watch.run(namespace)

    async def _run_requeue_timer(self, health: LoopHealth) -> None:
        with self._metrics.recovery_errors.count_exceptions():
            await run_requeue_timer(
                self._components.delaying_queue,
                self._components.job_evaluator.evaluate,
                self._metrics,
                health,
            )

    async def _resync_namespace(self, namespace: str | None) -> str:
        result = await resync_namespace(self._components.job_resync, namespace, self._metrics)
        self._on_job_watch_progress(namespace)
        return result.version

    async def _check_policies(self, health: LoopHealth) -> None:
        await run_policy_checks(
            self._session, self._known_policy_problems, self._settings.resync_interval, health
        )

    async def _run_resync(self, health: LoopHealth) -> None:
        await run_resync(
            self._components.job_resync,
            self._settings.watched_namespaces,
            metrics=self._metrics,
            timer=self._components.job_resync_timer,
            on_resync=self._on_resync,
            on_namespace=self._on_namespace_resynced,
            health=health,
        )

    def _on_resync(self, repaired: int) -> None:
        if self._components.silence_detector.is_silent(repaired):
            log.warning("watch stalled, restarting it", missed=repaired)
            self._metrics.watch_restarts.inc()
            self._start_job_watches()

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


def start_cron_job_loops(components: Components, tasks: TaskSupervisor, findings: Findings) -> None:
    """Begin to follow cron jobs and to act on them, if they may be seen."""
    if not all(findings.allows(verb, CRON_JOBS) for verb in ("get", "list", "watch")):
        log.warning("cron jobs disabled: no permission to list asynccronjobs")
        return
    tasks.start("cron job reconcilers", components.cron_job_reconcilers.run)
    tasks.start(
        "cron job requeue timer",
        lambda health: run_requeue_timer(
            components.cron_job_delaying_queue,
            components.cron_job_evaluator.evaluate,
            UnmeasuredRequeues(),
            health,
        ),
    )
    components.kopf_collections[CRON_JOBS].start(tasks)


def may_follow_arrays(findings: Findings) -> bool:
    """Return whether arrays may be seen at all."""
    return all(findings.allows(verb, ARRAYS) for verb in ("get", "list", "watch"))


def start_array_loops(components: Components, tasks: TaskSupervisor, findings: Findings) -> None:
    """Begin to follow arrays and to act on them, if they may be seen."""
    if not may_follow_arrays(findings):
        log.warning("arrays disabled: no permission to list asyncarrays")
        return
    tasks.start("array reconcilers", components.array_reconcilers.run)
    tasks.start(
        "array requeue timer",
        lambda health: run_requeue_timer(
            components.array_delaying_queue,
            components.array_evaluator.evaluate,
            UnmeasuredRequeues(),
            health,
        ),
    )
    components.kopf_collections[ARRAYS].start(tasks)


def _watch_name(resource: str, namespace: str | None) -> str:
    return watch_name(_RESOURCE_TITLES[resource], namespace)
