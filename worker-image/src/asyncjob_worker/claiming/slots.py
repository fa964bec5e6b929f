"""The slots of a worker: each selects a job, claims it, runs it, and selects the next."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from asyncjob.errors import ApiError
from asyncjob.kube.pacing import ExponentialBackoff
from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming.claimer import Claimer, explain_claim_error
from asyncjob_worker.claiming.selector import ClaimSelector
from asyncjob_worker.clock import boottime
from asyncjob_worker.errors import HeartbeatLagError
from asyncjob_worker.leases.held_job import HeldJob

log = structlog.get_logger()


class IdleSlots:
    """The slots that wait for a job to select.

    A change of the backlog wakes one of them. It looks first, and wakes the next if there may be
    more to claim: of many idle slots only one does the work for one job.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._woken: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def any(self) -> bool:
        """Whether a slot waits."""
        return bool(self._waiting)

    def wake_one(self) -> None:
        """Wake a slot, unless one has been woken that has not looked yet."""
        if self._woken is None and self._waiting:
            self._woken = self._waiting.popleft()
            self._woken.set_result(None)

    def wake_all(self) -> None:
        """Wake all slots: there is nothing more to wait for."""
        while self._waiting:
            self._waiting.popleft().set_result(None)

    async def wait(self, seconds: float | None) -> None:
        """Wait until woken.

        One is woken after `seconds` in any case; the slot that looked last says when that is.
        """
        loop = asyncio.get_running_loop()
        self.stop_timer()
        if seconds is not None:
            self._timer = loop.call_later(seconds, self.wake_one)
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            raise
        finally:
            if self._woken is waiter:
                self._woken = None

    def stop_timer(self) -> None:
        """Wake nobody at a set time any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@dataclass(slots=True)
class TakeoverCounts:
    """Counts of the claims of jobs that another worker claims first."""

    won: int = 0
    lost: int = 0


class Slots:
    """Claims and runs what the selector returns, up to `count` jobs at a time.

    `on_failure` is called when a slot fails unexpectedly; the others then drain.
    """

    def __init__(
        self,
        count: int,
        *,
        selector: ClaimSelector,
        claimer: Claimer,
        run_job: Callable[[HeldJob], Awaitable[None]],
        on_failure: Callable[[], None],
    ) -> None:
        self._count = count
        self._selector = selector
        self._claimer = claimer
        self._run_job = run_job
        self._on_failure = on_failure
        self._running: dict[HeldJob, Candidate] = {}
        self.takeovers = TakeoverCounts()
        self._idle = IdleSlots()
        self._draining = asyncio.Event()

    def wake(self) -> None:
        """Let an idle slot select again: the backlog or the queue has changed."""
        self._idle.wake_one()

    @property
    def has_idle(self) -> bool:
        """Whether a slot has nothing to do."""
        return self._idle.any

    def on_abandoned(self, held: HeldJob) -> None:
        """Record that an abandoned handler's outcome is written: it holds up no other job."""
        candidate = self._running.get(held)
        if candidate is not None and self._selector.on_abandoned(candidate):
            self.wake()

    def drain(self) -> None:
        """Claim nothing more; running handlers go on."""
        self._draining.set()
        self._idle.wake_all()

    async def run(self) -> None:
        """Run all slots until they are drained; raise what one of them has failed with."""
        slots = [asyncio.ensure_future(self._run_slot()) for _ in range(self._count)]
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
            self._idle.stop_timer()
            await asyncio.gather(*slots, return_exceptions=True)

    async def _run_slot(self) -> None:
        backoff = ExponentialBackoff()
        while (candidate := await self._select_next()) is not None:
            try:
                await self._claim_and_run(candidate, backoff)
            finally:
                if self._selector.done(candidate):
                    self.wake()

    async def _claim_and_run(self, candidate: Candidate, backoff: ExponentialBackoff) -> None:
        sent_at = boottime()
        is_takeover = self._selector.is_takeover(candidate)
        try:
            held = await self._claimer.claim(candidate)
        except (ApiError, HeartbeatLagError) as error:
            self._selector.put_back(candidate)
            pause = backoff.next_delay()
            log.warning("cannot claim", error=explain_claim_error(error), retry_in=round(pause, 1))
            await _wait_for(self._draining, pause)
            return
        backoff.reset()
        self._selector.record_claim(boottime() - sent_at, won=held is not None)
        if is_takeover:
            self._count_takeover(won=held is not None)
        if held is None:
            return
        self._running[held] = candidate
        try:
            await self._run_job(held)
        finally:
            del self._running[held]

    def _count_takeover(self, *, won: bool) -> None:
        if won:
            self.takeovers.won += 1
        else:
            self.takeovers.lost += 1

    async def _select_next(self) -> Candidate | None:
        """Wait for a job to claim; None once draining."""
        while not self._draining.is_set():
            candidate = self._selector.select()
            if candidate is not None:
                if self._selector.has_candidates:
                    self.wake()
                return candidate
            ready_at = self._selector.ready_at()
            await self._idle.wait(None if ready_at is None else max(0.0, ready_at - boottime()))
        return None


async def _wait_for(event: asyncio.Event, limit: float | None) -> None:
    """Wait for the event, at most `limit` seconds."""
    try:
        async with asyncio.timeout(limit):
            await event.wait()
    except TimeoutError:
        return
