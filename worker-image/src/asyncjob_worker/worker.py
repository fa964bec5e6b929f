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
from asyncjob_worker.components import Components
from asyncjob_worker.execution.runner import cancel_watch_params
from asyncjob_worker.health import Health, ReadinessState
from asyncjob_worker.leases.registration import leases_path
from asyncjob_worker.leases.stall_detector import Watchdog
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING, Tracing

log = structlog.get_logger()

LIVENESS_TICK_SECONDS = 0.25
CLOSE_STOP_WAITS = 2
"""Closing all resources may take so many times what a handler gets to stop."""

HEARTBEAT_CHECK_SECONDS = 1.0
MAX_MISSED_HEARTBEAT_CHECKS = 10
"""So many looks without a heartbeat of the heartbeat thread mean that it hangs."""


class Worker:
    """One worker process."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        session: KubeSession,
        holder: LeaseHolder,
        metrics: Metrics | None = None,
        *,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._settings = settings
        self._session = session
        self._holder = holder
        self._drain = Drain(settings)
        self._needs_restart = False
        self._metrics = metrics or Metrics()
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
        """Return what judges whether this process lives and is ready."""
        return build_health(self._components, self._drain, self._settings)

    def stop(self) -> None:
        """Begin the graceful stop; a second call ends the grace period at once."""
        self._drain.begin()

    async def run(self) -> bool:
        """Work until stopped; returns False if the process should be started anew."""
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
            await self._resources.close(CLOSE_STOP_WAITS * self._settings.stop_wait)
            if not self._components.runner.running:
                self._components.heartbeat.stop()

    async def _serve(self) -> bool:
        parts = self._components
        log.info("worker started", queue=self._settings.queue, worker=self._holder.worker)
        parts.events.worker_started()
        slots = asyncio.ensure_future(parts.slots.run())
        watches = [asyncio.ensure_future(work) for work in self._watches()]
        begun = asyncio.ensure_future(self._drain.begun())
        try:
            await asyncio.wait({begun, slots, *watches}, return_when=asyncio.FIRST_COMPLETED)
            parts.events.worker_stopping()
            await self._drain.run(parts, slots)
        finally:
            errors = await _cancel_all([begun, slots, *watches])
            await parts.registration.deregister()
            await parts.runner.end_processes()
            parts.runner.close()
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
        """Take a step of the start; False if stopped before it was done."""
        taken = asyncio.ensure_future(step)
        begun = asyncio.ensure_future(self._drain.begun())
        await asyncio.wait({taken, begun}, return_when=asyncio.FIRST_COMPLETED)
        stopped = not taken.done()
        errors = await _cancel_all([taken, begun])
        if errors:
            raise errors[0]
        return not stopped

    def _watches(self) -> Iterable[Coroutine[None, None, None]]:
        parts, queue = self._components, self._settings.queue
        namespace = self._session.access.namespace
        queues, jobs = collection_path(namespace, QUEUES), collection_path(namespace, JOBS)
        this_queue = {"fieldSelector": f"metadata.name={queue}"}
        yield self._follow("queue", queues, parts.queue, this_queue)
        yield self._follow(
            "workers", leases_path(namespace), parts.live_workers, worker_leases_params(queue)
        )
        yield self._follow("cancels", jobs, parts.runner.cancel_watcher, cancel_watch_params(queue))
        yield parts.registration.renew_periodically(parts.live_workers.tick)
        yield parts.watcher.run()
        yield self._tick_liveness()
        yield self._watch_heartbeat()

    def _follow(
        self, name: str, path: str, follower: ResourceEventHandler, params: Mapping[str, str]
    ) -> Coroutine[None, None, None]:
        begun = self._metrics.watch_starts(name)
        return run_informer(self._session, path, follower, params, on_watch=begun)

    async def _tick_liveness(self) -> None:
        """Show the heartbeat thread that the event loop runs."""
        while True:
            self._components.loop_liveness.tick()
            await asyncio.sleep(LIVENESS_TICK_SECONDS)

    async def _watch_heartbeat(self) -> None:
        """Stop in good order if the heartbeat thread has ended or hangs: no lease is safe then."""
        keeper = self._components.heartbeat
        watchman = Watchdog(keeper.liveness)
        while keeper.alive and watchman.check() < MAX_MISSED_HEARTBEAT_CHECKS:  # noqa: ASYNC110  # a thread's
            await asyncio.sleep(HEARTBEAT_CHECK_SECONDS)
        log.error("heartbeat thread has failed: the worker restarts", alive=keeper.alive)
        self._restart()
        await asyncio.Event().wait()

    def _restart(self) -> None:
        self._needs_restart = True
        self._drain.begin(without_grace=True)


async def _cancel_all(tasks: Sequence[asyncio.Future[Any]]) -> list[Exception]:
    """Cancel what still runs; return the errors of what ended by itself."""
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    return [error for error in ended if isinstance(error, Exception)]


RELEASE_SECONDS = 5.0
"""How long the release of the jobs that are left may take."""


class Drain:
    """Knows whether the worker drains, and whether in a hurry."""

    def __init__(self, settings: Settings) -> None:
        self._grace = settings.grace
        self._stop_wait = settings.stop_wait
        self._begun = asyncio.Event()
        self._no_grace = asyncio.Event()

    def begin(self, *, without_grace: bool = False) -> None:
        """Begin; the second time, or in a hurry, without any grace for running handlers."""
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

    async def run(self, components: Components, slots: asyncio.Future[None]) -> None:
        """Claim no more, let handlers end within the grace period, release what then stops."""
        log.info("worker draining", running=len(components.runner.running), grace=self._grace)
        components.slots.drain()
        components.runner.stop_waiting_for_abandoned()
        telling = asyncio.ensure_future(components.registration.mark_draining())
        hurry = asyncio.ensure_future(self._no_grace.wait())
        either: set[asyncio.Future[Any]] = {slots, hurry}
        try:
            await asyncio.wait(either, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
            components.runner.stop_all(Stop.DRAINING)
            await asyncio.wait({slots}, timeout=self._stop_wait + RELEASE_SECONDS)
        finally:
            hurry.cancel()
            telling.cancel()
        for held in components.runner.running:
            log.error(
                "job left to the operator: it stays leased until this process has ended",
                job=held.job.name,
            )


def metric_sources(
    components: Components, slots: int
) -> Mapping[MetricSpec, Callable[[], Samples]]:
    """Return for each metric that is read where it is read from."""
    claims, keeper, runner = components.claimer.counts, components.heartbeat, components.runner
    return {
        worker.CLAIMS: lambda: {
            ("won",): claims.won,
            ("conflict",): claims.conflicts,
            ("refused",): claims.refused,
            ("postponed",): claims.postponed,
        },
        worker.LEASE_RENEWALS: lambda: {
            ("stored",): keeper.renewals,
            ("failed",): keeper.renewal_failures,
        },
        worker.HEARTBEAT_LATE_SECONDS: lambda: {(): keeper.lateness.seconds},
        worker.RUNNING: lambda: {(): len(runner.running)},
        worker.SLOTS: lambda: {(): slots},
        worker.ABANDONED: lambda: {(): runner.abandoned},
        worker.BACKLOG: lambda: {(): len(components.backlog)},
    }


def build_health(components: Components, drain: Drain, settings: Settings) -> Health:
    """Return what judges whether a process with these parts lives and is ready."""

    def signs() -> ReadinessState:
        return ReadinessState(
            registered=components.heartbeat.alive,
            queue_known=components.queue.synced,
            workers_known=components.live_workers.synced,
            watching_jobs=components.watcher.is_watching,
            enforcement_unproven=components.enforcement.unproven,
            draining=drain.is_begun,
        )

    return Health(
        components.loop_liveness, components.heartbeat, signs, stall_limit=settings.stall_limit
    )


def resource_types_to_open(app: WorkerApp) -> Sequence[Any]:
    """Return the types to open, as declared; raises HandlerError where resources need each other.

    One that nobody takes is opened, too: it may be there for what its opening does.
    """
    elsewhere = _with_dependencies(app, _types_of(_needs_in_processes(app)))
    roots = [kind for kind in app.resources if kind not in elsewhere]
    here = _with_dependencies(app, [*roots, *_types_of(_needs_here(app))])
    return [kind for kind in app.resources if kind in here]


def _with_dependencies(app: WorkerApp, wanted: Iterable[Any]) -> AbstractSet[Any]:
    """Return the types of what is wanted, and of what that needs."""
    return {one.type for one in in_dependency_order(app.resources, {}, wanted)}


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
