"""The slots of a worker: each picks a job, claims it, runs it, and picks the next."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.backoff import Backoff
from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.backlog import Backlog
from asyncjob_worker.claimer import Claimer, cannot_claim
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.held import HeldJob
from asyncjob_worker.queue_view import QueueView

log = structlog.get_logger()


class Slots:
    """Works off a backlog, up to `count` jobs at a time."""

    def __init__(
        self,
        count: int,
        *,
        backlog: Backlog,
        queue: QueueView,
        claimer: Claimer,
        run_job: Callable[[HeldJob], Awaitable[None]],
        look_again: Callable[[], None],
    ) -> None:
        self._count = count
        self._backlog = backlog
        self._queue = queue
        self._claimer = claimer
        self._run_job = run_job
        self._look_again = look_again
        self._work = asyncio.Event()
        self._draining = False

    def wake(self) -> None:
        """Look at the backlog: something there, or about the queue, has changed."""
        self._work.set()

    def drain(self) -> None:
        """Claim nothing more; running handlers go on."""
        self._draining = True
        self.wake()

    async def run(self) -> None:
        """Run all slots until they are drained."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._count):
                group.create_task(self._slot())

    async def _slot(self) -> None:
        backoff = Backoff()
        while (candidate := await self._next()) is not None:
            try:
                held = await self._claimer.claim(candidate)
            except ApiError as error:
                self._backlog.put(candidate, lease_seconds())
                pause = backoff.pause()
                log.warning("cannot claim", error=cannot_claim(error), retry_in=round(pause, 1))
                await asyncio.sleep(pause)
                continue
            backoff.reset()
            if held is not None:
                await self._run_job(held)

    async def _next(self) -> Candidate | None:
        """Wait for a job to claim; None once draining."""
        while not self._draining:
            candidate = self._pick()
            if candidate is not None:
                return candidate
            self._work.clear()
            await self._wait()
        return None

    def _pick(self) -> Candidate | None:
        if not self._queue.synced or self._queue.paused:
            return None
        while (candidate := self._backlog.take(lease_seconds())) is not None:
            if candidate.admitted or not self._queue.limited:
                return candidate
        if self._backlog.overflowed and not len(self._backlog):
            self._look_again()
        return None

    async def _wait(self) -> None:
        ready_at = self._backlog.ready_at()
        limit = None if ready_at is None else max(0.0, ready_at - lease_seconds())
        try:
            async with asyncio.timeout(limit):
                await self._work.wait()
        except TimeoutError:
            return
