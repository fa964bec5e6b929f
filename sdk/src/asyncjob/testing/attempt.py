"""One attempt at a job: runs the handler for real and decides its outcome as a worker would.

What becomes of the outcome is not its concern.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from pydantic import ValidationError

from asyncjob.app import Handler, outcomes
from asyncjob.app.stop import Stop
from asyncjob.json_types import JsonObject, child
from asyncjob.lifecycle.move import Move
from asyncjob.lifecycle.policy import BUILT_IN, DEFAULT_CANCEL_GRACE_SECONDS
from asyncjob.lifecycle.view import read_job
from asyncjob.testing.bench import Bench, describe
from asyncjob.testing.calling import HandlerExitError, runs_in_loop, work_on
from asyncjob.testing.children import FakeChildren
from asyncjob.testing.reports import Errand, Inbox, Report, SteppedContext
from asyncjob.testing.skipping import Timekeeper, context_with

STOP_WAIT: Final = 5.0
"""Seconds that a handler which was told to stop gets before it is abandoned, unless cancelled."""

Work = asyncio.Task[object]

_RANK: Final = {why: rank for rank, why in enumerate(Stop)}


class Attempt:
    """A claimed job's handler at work. `obj` is the job as the claim has stored it."""

    def __init__(self, bench: Bench, obj: JsonObject, queue_grace: float | None = None) -> None:
        self._bench = bench
        self.job = read_job(obj)
        self._obj = obj
        self._handler: Handler = bench.app.handlers[self.job.type].inside()
        self._work: Work | None = None
        self._decided: Callable[[], Move] | None = None
        self._context: SteppedContext | None = None
        self._queue_grace = queue_grace
        self._taken: list[Report] = []
        self.inbox = Inbox(bench.stir)
        self.reports: list[Report] = []
        self.children = FakeChildren(bench.store, bench.clock, self.inbox, self.job.uid)
        self.stopped: Stop | None = None
        self.error: BaseException | None = None
        self.times_out_at = bench.clock.elapsed + self._limit()
        self.gives_up_at: float | None = None

    def begin(self) -> None:
        """Read the payload and start the handler."""
        try:
            payload = self._handler.read_payload(child(self._obj, "spec").get("payload"))
        except ValidationError as error:
            refusal = error
            self.error = error
            self._decided = lambda: outcomes.invalid_payload(self.job, refusal, now=self._now)
        except Exception as error:  # noqa: BLE001  # a validator of the handler's own may raise anything
            self.error = error
            self._decided = self._failed
        else:
            self._start(payload)

    @property
    def due_at(self) -> float:
        """When on the fake clock the attempt needs looking at if nothing happens before."""
        limit = self.times_out_at if self.gives_up_at is None else self.gives_up_at
        waits = self.children.due_at
        return limit if waits is None else min(limit, waits)

    @property
    def ended(self) -> bool:
        """Whether the outcome can be decided: the handler is over, or given up on."""
        if len(self.inbox):
            return False
        over = self._work is None or self._work.done()
        return over or (self.gives_up_at is not None and self._now_at >= self.gives_up_at)

    @property
    def has_news(self) -> bool:
        """Whether there is a report to take, or the handler is over."""
        return bool(len(self.inbox)) or self._over

    @property
    def asleep(self) -> bool:
        """Whether only time moves the handler on."""
        return self._bench.clock.sleeps(self) or self.children.waits

    def take(self) -> Report | Errand:
        """Take the oldest report or errand; after a report the handler waits for `go_on`."""
        first = self.inbox.first()
        if isinstance(first, Report):
            self.reports.append(first)
            self._taken.append(first)
        return first

    def go_on(self) -> None:
        """Let the handler go on after what was taken."""
        while self._taken:
            self._taken.pop().take()

    def look(self) -> bool:
        """Stop an attempt whose time is up; returns whether it was."""
        if self.stopped is None and not self._over and self._now_at >= self.times_out_at:
            self.stop(Stop.TIMED_OUT)
            return True
        return False

    def stop(self, why: Stop) -> None:
        """Tell the handler to stop; of several reasons the highest counts."""
        if self._over:
            return
        if self.stopped is not None and _RANK[why] <= _RANK[self.stopped]:
            return
        first = self.stopped is None
        self.stopped = why
        self.gives_up_at = self._now_at + self._patience(why)
        if first:
            self._interrupt()

    def outcome(self) -> Move | None:
        """Return what is to be stored; None if the job is no longer this attempt's."""
        self.inbox.close()
        self.children.stop()
        if self.stopped is not None and self._decided is None:
            return outcomes.stopped(self.job, self.stopped, now=self._now, draw=self._bench.draw)
        if self._decided is not None:
            return self._decided()
        assert self._work is not None
        if self._work.cancelled():
            self.error = HandlerExitError("the handler cancelled itself")
        else:
            self.error = self._work.exception()
        return self._succeeded(self._work) if self.error is None else self._failed()

    async def leave(self, patience: float) -> None:
        """Let go of the handler, whatever it does; waits so many real seconds for its end."""
        self.stop(Stop.FENCED)
        self.inbox.close()
        self.go_on()
        if self._work is not None and not self._work.done():
            self._work.cancel()
            await asyncio.wait({self._work}, timeout=patience)
            self._abandon(self._work)

    # ---- how it goes on

    def _abandon(self, work: Work) -> None:
        if self._context is not None and not work.done():
            self._context.abandoned = True
            work.cancel()

    def _start(self, payload: object) -> None:
        bench = self._bench
        job = SteppedContext(
            describe(self.job, self._obj),
            self.inbox,
            remaining=lambda: self.times_out_at - bench.clock.elapsed,
            max_bytes=bench.max_bytes,
            children=self.children,
        )
        job.inbox, job.in_thread = self.inbox, not runs_in_loop(self._handler)
        context = context_with(Timekeeper(bench.clock, self))
        self._context = job
        work = work_on(bench.app, self._handler, job, payload, bench.resources)
        self._work = asyncio.get_running_loop().create_task(work, context=context)
        self._work.add_done_callback(_retrieve)
        self._work.add_done_callback(lambda _: bench.stir())

    def _interrupt(self) -> None:
        if self._context is not None:
            self._context.stop()
        if self._work is not None:
            self._work.cancel()

    def _succeeded(self, work: Work) -> Move:
        limit = self._bench.max_bytes
        return outcomes.succeeded(
            self.job, self._handler, work.result(), max_bytes=limit, now=self._now
        )

    def _failed(self) -> Move:
        assert self.error is not None
        bench = self._bench
        return outcomes.failed(
            self.job, self.error, bench.app.categories, now=self._now, draw=bench.draw
        )

    def _patience(self, why: Stop) -> float:
        if why is not Stop.CANCELLED:
            return STOP_WAIT
        grace = self._cancel_grace()
        return max(grace - 1.0, grace / 2)

    def _cancel_grace(self) -> float:
        for grace in (self.job.cancel_grace_seconds, self._queue_grace):
            if grace is not None:
                return grace
        return DEFAULT_CANCEL_GRACE_SECONDS

    def _limit(self) -> int:
        return (self.job.effective or BUILT_IN).execution_timeout_seconds

    @property
    def _over(self) -> bool:
        return self._work is None or self._work.done()

    @property
    def _now(self) -> str:
        return self._bench.clock.text

    @property
    def _now_at(self) -> float:
        return self._bench.clock.elapsed


def _retrieve(work: Work) -> None:
    """Look at an error that may not count any more, or asyncio would report it as forgotten."""
    if not work.cancelled():
        work.exception()
