"""The worker process: starts and stops its components in the written order.

Start: resources → worker Lease → heartbeat thread → watches of the queue, of its workers, of cancel
requests and of queued jobs → slots.
Stop: claim nothing more → mark the worker Lease as draining → let handlers end within the grace
period → stop the rest and release their jobs → end the watches → empty the worker Lease → end the
handlers' processes → flush hook events → close resources → end the heartbeat thread, except for
jobs whose handlers only the end of the process will end.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import structlog

from asyncjob.app import Isolation, WorkerApp
from asyncjob.app.context import Stop
from asyncjob.app.inspection import ResourceNeeds
from asyncjob.app.resource_lifecycle import OpenResources
from asyncjob.app.resources import in_dependency_order
from asyncjob.kube import KubeSession
from asyncjob.kube.informer import ResourceEventHandler, run_informer
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.metrics import MetricSpec, worker
from asyncjob.metrics.prometheus import Samples
from asyncjob.names import JOBS, QUEUES, collection_path
from asyncjob_worker.claiming.queue_state import worker_leases_params
from asyncjob_worker.claiming.sharding import ShardDeal
from asyncjob_worker.claiming.slots import Slots
from asyncjob_worker.components import Components
from asyncjob_worker.execution.runner import JobRunner, cancel_watch_params
from asyncjob_worker.health import Health, ReadinessState
from asyncjob_worker.leases.registration import WorkerRegistration, leases_path
from asyncjob_worker.leases.stall_detector import Watchdog
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import Tracing

log = structlog.get_logger()

LIVENESS_TICK_SECONDS = 0.25
"""How often the event loop ticks; the heartbeat thread checks it as often (`TICK_SECONDS`)."""

CLOSE_STOP_WAITS = 2
"""Closing all resources may take this many times the stop wait of a handler."""

HEARTBEAT_CHECK_SECONDS = 1.0

MAX_MISSED_HEARTBEAT_CHECKS = 10
"""After this many checks in a row without a tick the heartbeat thread counts as hanging."""

RELEASE_SECONDS = 5.0
"""How long the handlers stopped at the end of a drain may take to release their jobs, beyond
the stop wait."""


class Worker:
    """One worker process."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        session: KubeSession,
        holder: LeaseHolder,
        *,
        metrics: Metrics,
        tracing: Tracing,
    ) -> None:
        self._settings = settings
        self._session = session
        self._holder = holder
        self._drain = Drain(settings)
        self._needs_restart = False
        self._metrics = metrics
        self._app = app
        self._resources = OpenResources(app)
        self._components = Components(
            app,
            settings,
            session,
            holder,
            on_exhausted=self._restart,
            on_failure=self._drain.begin,
            metrics=self._metrics,
            tracing=tracing,
        )
        self._metrics.expect(app.handlers)
        self._metrics.add_sources(metric_sources(self._components, settings.slots()))

    def health(self) -> Health:
        """Return the liveness and readiness checks of this process."""
        return build_health(self._components, self._drain, self._settings)

    @property
    def is_draining(self) -> bool:
        """Whether it has begun to end, on request or by itself."""
        return self._drain.is_begun

    def stop(self) -> None:
        """Begin the graceful stop; a second call ends the grace period at once."""
        self._drain.begin()

    async def run(self) -> bool:
        """Work until stopped; return False if the process should be restarted.

        Raises what a watch or a slot has failed with, and CannotStartError.
        """
        try:
            if not await self._unless_stopped(self._open()):
                return True
            if not await self._unless_stopped(self._components.registration.register()):
                await self._components.registration.deregister()
                return True
            self._components.heartbeat.start()
            return await self._serve()
        finally:
            await self._components.hooks.close()
            await self._resources.close(CLOSE_STOP_WAITS * self._settings.stop_grace_seconds)
            if not self._components.runner.outliving:
                self._components.heartbeat.stop()

    async def _serve(self) -> bool:
        components = self._components
        log.info("worker started", queue=self._settings.queue, worker=self._holder.worker)
        components.events.worker_started()
        slots = asyncio.ensure_future(components.slots.run())
        watches = [asyncio.ensure_future(watch) for watch in self._watches()]
        drain_begun = asyncio.ensure_future(self._drain.begun())
        try:
            await asyncio.wait({drain_begun, slots, *watches}, return_when=asyncio.FIRST_COMPLETED)
            components.events.worker_stopping()
            await self._drain.run(
                components.slots, components.runner, components.registration, slots
            )
        finally:
            errors = await _cancel_all([drain_begun, slots, *watches])
            await components.registration.deregister()
            await components.runner.end_processes()
            components.runner.close()
        log.info("worker stopped", worker=self._holder.worker)
        if errors:
            raise errors[0]
        return not self._needs_restart

    async def _open(self) -> None:
        self._app.check()
        resources = await self._resources.open(resource_types_to_open(self._app))
        self._components.runner.set_resources(resources)
        self._components.hooks.start(resources)

    async def _unless_stopped(self, step: Coroutine[None, None, None]) -> bool:
        """Run one step of the start; return False if the worker was stopped meanwhile."""
        task = asyncio.ensure_future(step)
        drain_begun = asyncio.ensure_future(self._drain.begun())
        await asyncio.wait({task, drain_begun}, return_when=asyncio.FIRST_COMPLETED)
        stopped = not task.done()
        errors = await _cancel_all([task, drain_begun])
        if errors:
            raise errors[0]
        return not stopped

    def _watches(self) -> Iterable[Coroutine[None, None, None]]:
        components, queue = self._components, self._settings.queue
        namespace = self._session.access.namespace
        queues, jobs = collection_path(namespace, QUEUES), collection_path(namespace, JOBS)
        this_queue = {"fieldSelector": f"metadata.name={queue}"}
        yield self._follow("queue", queues, components.queue, this_queue)
        yield self._follow(
            "workers", leases_path(namespace), components.live_workers, worker_leases_params(queue)
        )
        yield self._follow(
            "cancels", jobs, components.runner.cancel_watcher, cancel_watch_params(queue)
        )
        yield components.registration.renew_periodically(components.live_workers.tick)
        yield components.watcher.run()
        yield self._tick_liveness()
        yield self._watch_heartbeat()
        yield components.shard_watches.run()

    def _follow(
        self, name: str, path: str, follower: ResourceEventHandler, params: Mapping[str, str]
    ) -> Coroutine[None, None, None]:
        observer = self._metrics.watch_observer(name)
        return run_informer(self._session, path, follower, params, observer=observer)

    async def _tick_liveness(self) -> None:
        """Show the heartbeat thread and the health checks that the event loop runs.

        Either of the two stops handlers in time where the other hangs.
        """
        while True:
            self._components.loop_liveness.tick()
            self._components.runner.fence_expired()
            await asyncio.sleep(LIVENESS_TICK_SECONDS)

    async def _watch_heartbeat(self) -> None:
        """Restart the worker if the heartbeat thread has ended or hangs: no lease is safe then."""
        heartbeat = self._components.heartbeat
        watchdog = Watchdog(heartbeat.liveness)
        while heartbeat.alive and watchdog.check() < MAX_MISSED_HEARTBEAT_CHECKS:  # noqa: ASYNC110  # a thread's
            await asyncio.sleep(HEARTBEAT_CHECK_SECONDS)
        log.error("heartbeat thread has failed: the worker restarts", alive=heartbeat.alive)
        self._restart()
        await asyncio.Event().wait()

    def _restart(self) -> None:
        # Who was asked to end before is not started again for what fails meanwhile.
        self._needs_restart |= not self._drain.is_begun
        self._drain.begin(without_grace=True)


async def _cancel_all(tasks: Sequence[asyncio.Future[Any]]) -> list[Exception]:
    """Cancel the tasks that still run; return the errors of those that had failed."""
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    return [error for error in ended if isinstance(error, Exception)]


class Drain:
    """The worker's drain: whether it has begun, and whether running handlers get a grace period."""

    def __init__(self, settings: Settings) -> None:
        self._grace = settings.grace
        self._stop_grace_seconds = settings.stop_grace_seconds
        self._begun = asyncio.Event()
        self._no_grace = asyncio.Event()

    def begin(self, *, without_grace: bool = False) -> None:
        """Begin; a second call, or `without_grace`, leaves running handlers no grace period."""
        if without_grace or self._begun.is_set():
            self._no_grace.set()
        self._begun.set()

    @property
    def is_begun(self) -> bool:
        """Whether it has begun."""
        return self._begun.is_set()

    async def begun(self) -> None:
        """Wait until it has begun."""
        await self._begun.wait()

    async def run(
        self,
        slots: Slots,
        runner: JobRunner,
        registration: WorkerRegistration,
        slots_ended: asyncio.Future[None],
    ) -> None:
        """Claim no more jobs, let handlers end within the grace period, release what then stops."""
        log.info("worker draining", running=len(runner.running), grace=self._grace)
        slots.drain()
        runner.stop_waiting_for_abandoned()
        marking = asyncio.ensure_future(registration.mark_draining())
        no_grace = asyncio.ensure_future(self._no_grace.wait())
        either: set[asyncio.Future[Any]] = {slots_ended, no_grace}
        try:
            await asyncio.wait(either, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
            runner.stop_all(Stop.DRAINING)
            await asyncio.wait({slots_ended}, timeout=self._stop_grace_seconds + RELEASE_SECONDS)
        finally:
            no_grace.cancel()
            marking.cancel()
        for held in runner.running:
            log.error(
                "job left to the operator: it stays leased until this process has ended",
                job=held.job.name,
            )


def metric_sources(
    components: Components, slots: int
) -> Mapping[MetricSpec, Callable[[], Samples]]:
    """Return a source for each metric that is read only when it is collected."""
    claims, heartbeat, runner = components.claimer.counts, components.heartbeat, components.runner
    takeovers = components.slots.takeovers
    return {
        worker.CLAIMS: lambda: {
            ("won",): claims.won,
            ("conflict",): claims.conflicts,
            ("refused",): claims.refused,
            ("postponed",): claims.postponed,
        },
        worker.TAKEOVERS: lambda: {("won",): takeovers.won, ("lost",): takeovers.lost},
        worker.LEASE_RENEWALS: lambda: {
            ("stored",): heartbeat.counts.stored,
            ("failed",): heartbeat.counts.failed,
        },
        worker.HEARTBEAT_LATE_SECONDS: lambda: {(): heartbeat.lag.seconds},
        worker.RUNNING: lambda: {(): len(runner.running)},
        worker.SLOTS: lambda: {(): slots},
        worker.ABANDONED: lambda: {(): runner.abandoned},
        worker.SHARDS: lambda: _shards(components.shard_watches.deal),
        worker.JOB_EVENTS: lambda: {(): components.job_watches.events},
        worker.BACKLOG: lambda: {(): len(components.backlog)},
    }


def _shards(deal: ShardDeal | None) -> Samples:
    return {("own",): len(deal.own), ("deputy",): len(deal.deputy)} if deal else {}


def build_health(components: Components, drain: Drain, settings: Settings) -> Health:
    """Return the liveness and readiness checks of a process with these components."""

    def readiness() -> ReadinessState:
        return ReadinessState(
            registered=components.heartbeat.alive,
            queue_known=components.queue.synced,
            workers_known=components.live_workers.synced,
            watching_jobs=components.shard_watches.is_watching,
            enforcement_unproven=components.enforcement.unproven,
            draining=drain.is_begun,
        )

    return Health(
        components.loop_liveness, components.heartbeat, readiness, stall_limit=settings.stall_limit
    )


def resource_types_to_open(app: WorkerApp) -> Sequence[Any]:
    """Return the resource types to open in this process, in the order of their declaration.

    All but those that only handlers with a process of their own need. A resource that nothing
    needs is opened too: it may be declared for the side effects of opening it. Raises
    HandlerError where resources depend on each other in a circle.
    """
    in_processes = _with_dependencies(app, _types_of(_needs_in_processes(app)))
    roots = [type_ for type_ in app.resources if type_ not in in_processes]
    here = _with_dependencies(app, [*roots, *_types_of(_needs_here(app))])
    return [type_ for type_ in app.resources if type_ in here]


def _with_dependencies(app: WorkerApp, wanted: Iterable[Any]) -> AbstractSet[Any]:
    """Return the wanted types and all types that they depend on."""
    return {resource.type for resource in in_dependency_order(app.resources, {}, wanted)}


def _types_of(functions: Iterable[ResourceNeeds]) -> Iterable[Any]:
    return [need.type for needs in functions for need in needs.values()]


def _needs_in_processes(app: WorkerApp) -> Iterator[ResourceNeeds]:
    for handler in app.handlers.values():
        if handler.isolation is Isolation.PROCESS:
            yield handler.needs


def _needs_here(app: WorkerApp) -> Iterator[ResourceNeeds]:
    for handler in app.handlers.values():
        yield from (layer.needs for layer in app.middleware_of(handler))
        if handler.isolation is not Isolation.PROCESS:
            yield handler.needs
    yield from (hook.needs for hook in app.hooks)
