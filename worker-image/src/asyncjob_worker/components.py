"""The components of a worker process and how they are wired, top to bottom.

`Worker` starts and stops them. The private methods are the callbacks between components, which are
methods because the component that they call is built later.
"""

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import structlog

from asyncjob.app import WorkerApp, outcomes
from asyncjob.errors import ApiError
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.arrays.chunks import is_chunk_type
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.lifecycle.phase_change import PhaseChange
from asyncjob_worker.claiming.backlog import Backlog
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.feed import BacklogFeed
from asyncjob_worker.claiming.foreign_looks import ForeignLooks
from asyncjob_worker.claiming.job_look import JobLook
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState
from asyncjob_worker.claiming.selection import JobSelection
from asyncjob_worker.claiming.selector import ClaimSelector
from asyncjob_worker.claiming.shard_watches import ShardWatches
from asyncjob_worker.claiming.slots import Slots
from asyncjob_worker.claiming.watcher import QueuedJobWatcher
from asyncjob_worker.clock import boottime, now_text, wall_seconds
from asyncjob_worker.execution.attempt import AttemptServices
from asyncjob_worker.execution.attempt_waits import MayPark
from asyncjob_worker.execution.children.child_jobs import MAX_CONCURRENT_SUBMITS, AttemptChildJobs
from asyncjob_worker.execution.handler_record import HandlerRecorder
from asyncjob_worker.execution.hooks import HookEvents, Hooks
from asyncjob_worker.execution.runner import JobRunner
from asyncjob_worker.leases.heartbeat import HeartbeatThread
from asyncjob_worker.leases.held_job import HeldJob
from asyncjob_worker.leases.outcome_writer import OutcomeWriter
from asyncjob_worker.leases.ownership import EnforcementCheck
from asyncjob_worker.leases.park_permission import ParkPermission
from asyncjob_worker.leases.registration import WorkerLease, WorkerRegistration
from asyncjob_worker.leases.stall_detector import LivenessCounter
from asyncjob_worker.leases.step_writer import StepWriter
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import Tracing

log = structlog.get_logger()


class Components:
    """All components of one worker process.

    `on_exhausted` is called when every slot is held by an abandoned handler, `on_failure` when a
    slot fails unexpectedly.
    """

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        session: KubeSession,
        holder: LeaseHolder,
        *,
        on_exhausted: Callable[[], None],
        on_failure: Callable[[], None],
        metrics: Metrics,
        tracing: Tracing,
    ) -> None:
        access = session.access
        self.loop_liveness = LivenessCounter()
        self.heartbeat = HeartbeatThread(
            access.kubeconfig,
            access.namespace,
            settings.report_interval,
            self.loop_liveness,
            metrics=metrics,
            blocking_job=self._blocking_job,
        )
        self.registration = WorkerRegistration(session, _worker_lease(app, settings, holder))
        limits = {
            name: handler.concurrency
            for name, handler in app.handlers.items()
            if handler.concurrency
        }
        chunk_types = frozenset(filter(is_chunk_type, app.handlers))
        self.backlog = Backlog(
            takeover_delay=settings.takeover_delay,
            limit=settings.max_backlog,
            limited_types=chunk_types | limits.keys(),
        )
        self.live_workers = LiveWorkers(
            holder,
            settings.worker_lease_interval,
            boottime,
            self._reassign_partitions,
            app.handlers,
        )
        self.queue = QueueState(self._wake, self._relist)
        self.hooks = Hooks(app.hooks)
        self.events = HookEvents(self.hooks, holder, access.namespace, settings)
        self.runner = JobRunner(
            app,
            settings,
            heartbeat=self.heartbeat,
            outcome_writer=OutcomeWriter(session, _refused_outcome),
            on_exhausted=on_exhausted,
            on_abandoned=self._on_abandoned,
            services=AttemptServices.from_settings(
                settings,
                read_object=session.get,
                children=partial(
                    AttemptChildJobs, session, limiter=asyncio.Semaphore(MAX_CONCURRENT_SUBMITS)
                ),
                record=(
                    HandlerRecorder(settings.handler_record) if settings.handler_record else None
                ),
                step_writer=StepWriter(session),
                on_step_stored=metrics.step_stored,
                may_park=_park_policy(session, settings),
                server_time=partial(_server_time, session),
            ),
            events=self.events,
            metrics=metrics,
            tracing=tracing,
        )
        self.job_watches = metrics.job_watch_observer()
        new_feed = partial(
            BacklogFeed,
            self.backlog,
            types=app.handlers,
            clock=boottime,
            on_candidate=self._wake,
        )

        def new_watch(selection: JobSelection) -> QueuedJobWatcher:
            return QueuedJobWatcher(session, new_feed(selection), self.job_watches)

        def new_look(selection: JobSelection) -> JobLook:
            return JobLook(session, new_feed(selection), self.job_watches)

        self.watcher = new_watch(JobSelection(settings.queue))
        self.shard_watches = ShardWatches(
            holder.worker,
            self.watcher,
            self.backlog,
            watch=new_watch,
            looks=ForeignLooks(
                self.backlog,
                look=new_look,
                watch=new_watch,
            ),
            is_idle=self._is_idle,
        )
        self._selector = selector = ClaimSelector(
            backlog=self.backlog,
            queue=self.queue,
            live_workers=self.live_workers,
            clock=boottime,
            relist=self._relist,
            limits=limits,
            chunk_types=chunk_types,
            slots=settings.slots(),
        )
        self.enforcement = EnforcementCheck(session, required=settings.require_policy)
        self.claimer = Claimer(
            session, app, self.queue, holder, self.enforcement, lag=self.heartbeat.lag
        )
        self.slots = Slots(
            settings.slots(),
            selector=selector,
            claimer=self.claimer,
            run_job=self.runner.run,
            on_failure=on_failure,
        )

    def _on_abandoned(self, held: HeldJob) -> None:
        self.slots.on_abandoned(held)

    def _blocking_job(self) -> HeldJob | None:
        return self.runner.running_handlers.blocking_job()

    def _wake(self) -> None:
        self.slots.wake()

    def _relist(self) -> None:
        self.shard_watches.relist()

    def _is_idle(self) -> bool:
        return self.slots.has_idle and self._selector.is_open

    def _reassign_partitions(self) -> None:
        log.info("workers of the queue changed", live=len(self.live_workers.live))
        self.shard_watches.set_workers(self.live_workers.live, self.live_workers.peers)
        self._wake()


def _park_policy(session: KubeSession, settings: Settings) -> MayPark:
    """Return what says whether jobs may be parked now."""
    if settings.park == "auto":
        return ParkPermission(
            session, settings.operator_namespace, settings.operator_lease
        ).is_granted
    allowed = settings.park == "always"

    async def may_park(_: Collection[str]) -> bool:
        return allowed

    return may_park


def _server_time(session: KubeSession) -> float:
    """Return the API server's clock in epoch seconds; this machine's before the first answer."""
    told = session.server_time()
    return wall_seconds() if told is None else told


def _worker_lease(app: WorkerApp, settings: Settings, holder: LeaseHolder) -> WorkerLease:
    return WorkerLease(
        holder,
        settings.queue,
        settings.slots(),
        sorted(app.handlers),
        settings.worker_lease_interval,
    )


def _refused_outcome(held: HeldJob, outcome: PhaseChange, error: ApiError) -> PhaseChange:
    return outcomes.refused_by_api_server(held.job, outcome, error, now=now_text())
