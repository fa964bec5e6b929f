"""Runs claimed jobs: keeps the lease, runs the attempt, reports its outcome."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog

from asyncjob.app import WorkerApp
from asyncjob_worker.attempt import Attempt
from asyncjob_worker.execution import Work
from asyncjob_worker.held import HeldJob, Stop
from asyncjob_worker.keeper import Keeper
from asyncjob_worker.reporter import Reporter
from asyncjob_worker.settings import Settings

log = structlog.get_logger()


class JobRunner:
    """Runs the jobs of one worker process; `on_exhausted` is called when no slot is left."""

    def __init__(
        self,
        app: WorkerApp,
        settings: Settings,
        *,
        keeper: Keeper,
        reporter: Reporter,
        on_exhausted: Callable[[], None],
    ) -> None:
        self._app = app
        self._settings = settings
        self._keeper = keeper
        self._reporter = reporter
        self._on_exhausted = on_exhausted
        self._threads = ThreadPoolExecutor(settings.slots(), thread_name_prefix="handler")
        self._abandoned = 0
        self.running: dict[str, HeldJob] = {}

    async def run(self, held: HeldJob) -> None:
        """Run one job to its reported outcome; an abandoned handler keeps the caller waiting."""
        attempt = Attempt(
            held, self._app.handlers[held.job.type], self._app, self._settings, self._threads
        )
        self.running[held.job.uid] = held
        self._keeper.keep(held)
        try:
            move = await attempt.run()
            if move is not None:
                await self._reporter.report(held, move)
        finally:
            self._keeper.let_go(held)
            self.running.pop(held.job.uid, None)
        if attempt.abandoned is not None:
            await self._outlast(attempt.abandoned)

    def stop_all(self, why: Stop) -> None:
        """Tell all running handlers to stop."""
        for held in list(self.running.values()):
            held.stop(why)

    def close(self) -> None:
        """Let go of the handler threads; one that never ends does not hold up the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _outlast(self, work: Work) -> None:
        self._abandoned += 1
        if self._abandoned == self._settings.slots():
            log.error("every slot is held by an abandoned handler: the worker restarts")
            self._on_exhausted()
        await asyncio.wait({work})
        self._abandoned -= 1
