"""The worker process: wires its parts, and starts and stops them in the written order.

Start: resources → announce → heartbeats → watches of queue, workers, cancels and jobs → slots.
Stop: claim no more → say so → let handlers end within the grace period → tell the rest to stop and
release those that do → end the watches → withdraw → end the handlers' processes → tell hooks the
rest → resources → end heartbeats, but for jobs whose handlers only the end of the process will end.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

import structlog

from asyncjob.app import WorkerApp
from asyncjob.app.opening import OpenResources
from asyncjob.kube import KubeSession
from asyncjob.kube.follow import ResourceEventHandler, run_informer
from asyncjob.lifecycle.claim import LeaseHolder
from asyncjob.names import JOBS, QUEUES, collection_path
from asyncjob_worker.announcement import leases_path
from asyncjob_worker.cancels import cancel_watch_params
from asyncjob_worker.drain import Drain
from asyncjob_worker.health import Health
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.opened_here import resource_types_to_open
from asyncjob_worker.parts import Components
from asyncjob_worker.pulse import Watchdog
from asyncjob_worker.readings import build_health, metric_sources
from asyncjob_worker.roster import worker_leases_params
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
