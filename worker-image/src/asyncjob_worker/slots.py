"""The slots of a worker: each picks a job, claims it, runs it, and picks the next."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.backoff import Backoff
from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.choice import Choice
from asyncjob_worker.claimer import Claimer, cannot_claim
from asyncjob_worker.clock import lease_seconds
from asyncjob_worker.errors import HeartbeatsLateError
from asyncjob_worker.held import HeldJob

log = structlog.get_logger()


class Slots:
    """Works off what there is to choose from, up to `count` jobs at a time.

    `on_failure` is called when a slot fails unexpectedly; the others then drain.
    """

    def __init__(
        self,
        count: int,
        *,
        choice: Choice,
        claimer: Claimer,
        run_job: Callable[[HeldJob], Awaitable[None]],
        on_failure: Callable[[], None],
    ) -> None:
        self._count = count
        self._choice = choice
        self._claimer = claimer
        self._run_job = run_job
        self._on_failure = on_failure
        self._at_work: dict[HeldJob, Candidate] = {}
        self._work = asyncio.Event()
        self._draining = asyncio.Event()

    def wake(self) -> None:
        """Look at the backlog: something there, or about the queue, has changed."""
        self._work.set()

    def freed(self, held: HeldJob) -> None:
        """Take that a job's outcome is reported: an abandoned handler holds up no other job."""
        candidate = self._at_work.get(held)
        if candidate is not None and self._choice.freed(candidate):
            self.wake()

    def drain(self) -> None:
        """Claim nothing more; running handlers go on."""
        self._draining.set()
        self.wake()

    async def run(self) -> None:
        """Run all slots until they are drained; raises what one of them has failed with."""
        slots = [asyncio.ensure_future(self._slot()) for _ in range(self._count)]
        try:
            _, others = await asyncio.wait(slots, return_when=asyncio.FIRST_EXCEPTION)
            if others:
                self._on_failure()
                self.drain()
                await asyncio.wait(others)
            for slot in slots:
                slot.result()
        finally:
            for slot in slots:
                slot.cancel()
            await asyncio.gather(*slots, return_exceptions=True)

    async def _slot(self) -> None:
        backoff = Backoff()
        while (candidate := await self._next()) is not None:
            try:
                await self._work_on(candidate, backoff)
            finally:
                if self._choice.done_with(candidate):
                    self.wake()

    async def _work_on(self, candidate: Candidate, backoff: Backoff) -> None:
        begun = lease_seconds()
        try:
            held = await self._claimer.claim(candidate)
        except (ApiError, HeartbeatsLateError) as error:
            self._choice.put_back(candidate)
            pause = backoff.pause()
            log.warning("cannot claim", error=cannot_claim(error), retry_in=round(pause, 1))
            await _first_of(self._draining, pause)
            return
        backoff.reset()
        self._choice.settled(lease_seconds() - begun, won=held is not None)
        if held is None:
            return
        self._at_work[held] = candidate
        try:
            await self._run_job(held)
        finally:
            del self._at_work[held]

    async def _next(self) -> Candidate | None:
        """Wait for a job to claim; None once draining."""
        while not self._draining.is_set():
            candidate = self._choice.pick()
            if candidate is not None:
                return candidate
            self._work.clear()
            ready_at = self._choice.ready_at()
            limit = None if ready_at is None else max(0.0, ready_at - lease_seconds())
            await _first_of(self._work, limit)
        return None


async def _first_of(event: asyncio.Event, limit: float | None) -> None:
    """Wait for the event, or for so many seconds."""
    try:
        async with asyncio.timeout(limit):
            await event.wait()
    except TimeoutError:
        return
