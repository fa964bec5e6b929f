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
from asyncjob.kube.follow import Follower, follow
from asyncjob.lifecycle.claim import Holder
from asyncjob.names import JOBS, QUEUES, collection
from asyncjob_worker.announcement import leases_path
from asyncjob_worker.cancels import cancel_params
from asyncjob_worker.drain import Drain
from asyncjob_worker.health import Health
from asyncjob_worker.metrics import Metrics
from asyncjob_worker.opened_here import types_opened_here
from asyncjob_worker.parts import Parts
from asyncjob_worker.pulse import Watchman
from asyncjob_worker.readings import health_of, readings
from asyncjob_worker.roster import roster_params
from asyncjob_worker.settings import Settings
from asyncjob_worker.tracing import NO_TRACING, Tracing

log = structlog.get_logger()

PULSE_SECONDS = 0.25
CLOSE_WAITS = 2
"""Closing all resources may take so many times what a handler gets to stop."""

GUARD_SECONDS = 1.0
GUARD_LOOKS = 10
"""So many looks without a heartbeat of the heartbeat thread mean that it hangs."""


class Worker:
    """One worker process."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        session: KubeSession,
        holder: Holder,
        metrics: Metrics | None = None,
        *,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self._settings = settings
        self._session = session
        self._holder = holder
        self._drain = Drain(settings)
        self._exhausted = False
        self._metrics = metrics or Metrics()
        self._app = app
        self._resources = OpenResources(app)
        self._parts = Parts(
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
        self._metrics.read(readings(self._parts, settings.slots()))

    def health(self) -> Health:
        """Return what judges whether this process lives and is ready."""
        return health_of(self._parts, self._drain, self._settings)

    def stop(self) -> None:
        """Begin the graceful stop; a second call ends the grace period at once."""
        self._drain.begin()

    async def run(self) -> bool:
        """Work until stopped; returns False if the process should be started anew."""
        try:
            if not await self._unless_stopped(self._open()):
                return True
            if not await self._unless_stopped(self._parts.announcer.begin()):
                await self._parts.announcer.end()
                return True
            self._parts.keeper.start()
            return await self._serve()
        finally:
            await self._parts.hooks.end()
            await self._resources.close(CLOSE_WAITS * self._settings.stop_wait)
            if not self._parts.runner.running:
                self._parts.keeper.stop()

    async def _serve(self) -> bool:
        parts = self._parts
        log.info("worker started", queue=self._settings.queue, worker=self._holder.worker)
        parts.telling.worker_started()
        slots = asyncio.ensure_future(parts.slots.run())
        watches = [asyncio.ensure_future(work) for work in self._watches()]
        begun = asyncio.ensure_future(self._drain.begun())
        try:
            await asyncio.wait({begun, slots, *watches}, return_when=asyncio.FIRST_COMPLETED)
            parts.telling.worker_stopping()
            await self._drain.run(parts, slots)
        finally:
            errors = await _end([begun, slots, *watches])
            await parts.announcer.end()
            await parts.runner.end_processes()
            parts.runner.close()
        log.info("worker stopped", worker=self._holder.worker)
        if errors:
            raise errors[0]
        return not self._exhausted

    async def _open(self) -> None:
        self._app.check()
        resources = await self._resources.open(types_opened_here(self._app))
        self._parts.runner.provide(resources)
        self._parts.hooks.start(resources)

    async def _unless_stopped(self, step: Coroutine[None, None, None]) -> bool:
        """Take a step of the start; False if stopped before it was done."""
        taken = asyncio.ensure_future(step)
        begun = asyncio.ensure_future(self._drain.begun())
        await asyncio.wait({taken, begun}, return_when=asyncio.FIRST_COMPLETED)
        stopped = not taken.done()
        errors = await _end([taken, begun])
        if errors:
            raise errors[0]
        return not stopped

    def _watches(self) -> Iterable[Coroutine[None, None, None]]:
        parts, queue = self._parts, self._settings.queue
        namespace = self._session.access.namespace
        queues, jobs = collection(namespace, QUEUES), collection(namespace, JOBS)
        this_queue = {"fieldSelector": f"metadata.name={queue}"}
        yield self._follow("queue", queues, parts.queue, this_queue)
        yield self._follow("workers", leases_path(namespace), parts.roster, roster_params(queue))
        yield self._follow("cancels", jobs, parts.runner.cancels, cancel_params(queue))
        yield parts.announcer.keep_on(parts.roster.tick)
        yield parts.feed.run()
        yield self._beat()
        yield self._guard()

    def _follow(
        self, name: str, path: str, follower: Follower, params: Mapping[str, str]
    ) -> Coroutine[None, None, None]:
        begun = self._metrics.watch_begun(name)
        return follow(self._session, path, follower, params, on_watch=begun)

    async def _beat(self) -> None:
        """Show the heartbeat thread that the event loop runs."""
        while True:
            self._parts.pulse.beat()
            await asyncio.sleep(PULSE_SECONDS)

    async def _guard(self) -> None:
        """Stop in good order if the heartbeat thread has ended or hangs: no lease is safe then."""
        keeper = self._parts.keeper
        watchman = Watchman(keeper.pulse)
        while keeper.alive and watchman.look() < GUARD_LOOKS:  # noqa: ASYNC110  # a thread's
            await asyncio.sleep(GUARD_SECONDS)
        log.error("heartbeat thread has failed: the worker restarts", alive=keeper.alive)
        self._restart()
        await asyncio.Event().wait()

    def _restart(self) -> None:
        self._exhausted = True
        self._drain.begin(hurry=True)


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> list[Exception]:
    """Cancel what still runs; return the errors of what ended by itself."""
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    return [error for error in ended if isinstance(error, Exception)]
