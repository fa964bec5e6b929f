"""One attempt at a job.

Calls the handler as a worker does, with its resources and inside its app's middleware, and decides
its outcome as a worker would.

What becomes of the outcome is the simulator's concern.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from asyncjob.app import Handler, JobInfo, Resources, WorkerApp, outcomes
from asyncjob.app.context import JobParent, Stop
from asyncjob.app.errors import HandlerExitError
from asyncjob.free_json import MAX_STORED_BYTES
from asyncjob.json_types import JsonObject, as_object, child, integer, opt_text, text
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import PhaseChange, park
from asyncjob.lifecycle.policy import BUILT_IN_POLICY, DEFAULT_CANCEL_GRACE_SECONDS
from asyncjob.lifecycle.step_records import steps_of
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.lifecycle.waits import first_waits, waits_of
from asyncjob.names import PARENT_LABEL, PARENT_NAME_ANNOTATION
from asyncjob.testing.call import call_handler, runs_in_loop
from asyncjob.testing.child_jobs import ArrayStore, FakeChildJobs
from asyncjob.testing.clock import FakeClock, HandlerTime, context_with_fake_time
from asyncjob.testing.handler_messages import ClusterCall, HandlerMessages, Report, SteppedContext
from asyncjob.testing.steps import FakeSteps
from asyncjob.testing.store import FakeJobStore


@dataclass(frozen=True, slots=True)
class FakeAttemptServices:
    """What all attempts share. `wake` tells that a handler has done something.

    `draw` decides the jitter of retries; `max_bytes` is the most that a result or checkpoint takes.
    Where `holds_for_children`, a handler that waits for child jobs keeps its slot; where
    `skips_waits`, so does one that waits for what time ends, and that time is skipped.
    """

    app: WorkerApp
    clock: FakeClock
    store: FakeJobStore
    arrays: ArrayStore
    resources: Resources
    wake: Callable[[], object]
    draw: float = 0.5
    max_bytes: int = MAX_STORED_BYTES
    holds_for_children: bool = False
    skips_waits: bool = False


def make_job_info(job: JobView, obj: JsonObject) -> JobInfo:
    """Return what the handler is told of the job."""
    spec, status = child(obj, "spec"), child(obj, "status")
    return JobInfo(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        type=job.type,
        queue=job.queue,
        attempt=job.attempt,
        retries=job.retries,
        max_retries=(job.effective or BUILT_IN_POLICY).max_retries,
        last_checkpoint=status.get("checkpoint"),
        request=as_object(spec.get("request")),
        traceparent=opt_text(spec, "traceparent"),
        priority=integer(spec, "priority"),
        parent=_job_parent(child(obj, "metadata")),
        steps=steps_of(status),
        waits=waits_of(status),
        parks=job.parks,
        created_at=job.creation_timestamp,
    )


def _job_parent(metadata: JsonObject) -> JobParent | None:
    uid = text(child(metadata, "labels"), PARENT_LABEL)
    name = opt_text(child(metadata, "annotations"), PARENT_NAME_ANNOTATION)
    return JobParent(uid, name) if uid else None


STOP_GRACE_SECONDS: Final = 5.0
"""Seconds that a handler which was told to stop gets before it is abandoned, unless cancelled."""

HandlerTask = asyncio.Task[object]

_STOP_RANK: Final = {why: rank for rank, why in enumerate(Stop)}


class FakeAttempt:
    """A claimed job's handler at work. `obj` is the job as the claim has stored it."""

    def __init__(
        self,
        services: FakeAttemptServices,
        obj: JsonObject,
        queue_cancel_grace: float | None = None,
    ) -> None:
        self._services = services
        self.job = read_job(obj)
        self._obj = obj
        self._handler: Handler = services.app.handlers[self.job.type].inside_process()
        self._task: HandlerTask | None = None
        self._early_outcome: Callable[[], PhaseChange] | None = None
        self._context: SteppedContext | None = None
        self._queue_cancel_grace = queue_cancel_grace
        self._unacknowledged: list[Report] = []
        self.messages = HandlerMessages(services.wake)
        self.reports: list[Report] = []
        self.children = FakeChildJobs(
            services.store, services.arrays, services.clock, self.messages, self.job.uid
        )
        name, number, clock = self.job.name, self.job.attempt, services.clock
        self.steps = FakeSteps(
            services.store, clock, self.messages, name, number, children=self.children
        )
        self.steps.skips_waits = services.skips_waits
        self.stopped: Stop | None = None
        self.error: BaseException | None = None
        self._times_out_at = services.clock.elapsed + self._execution_timeout()
        self.deadline_at = self._deadline_at()
        self.abandoned_at: float | None = None

    def start(self) -> None:
        """Read the payload and start the handler."""
        try:
            payload = self._handler.read_payload(child(self._obj, "spec").get("payload"))
        except ValidationError as error:
            refusal = error
            self.error = error
            self._early_outcome = lambda: outcomes.invalid_payload(self.job, refusal, now=self._now)
        except Exception as error:  # noqa: BLE001  # a validator of the handler's own may raise anything
            self.error = error
            self._early_outcome = self._failed
        else:
            self._start_handler(payload)

    @property
    def due_at(self) -> float:
        """When on the fake clock the attempt needs looking at if nothing happens before."""
        limit = self.deadline_at if self.steps.is_skipping else self.ends_at
        limit = limit if self.abandoned_at is None else self.abandoned_at
        waits = self.children.due_at
        return limit if waits is None else min(limit, waits)

    @property
    def times_out_at(self) -> float:
        """When its time limit is over; what is skipped does not count."""
        return self._times_out_at + self.steps.skipped_seconds

    @property
    def ends_at(self) -> float:
        """When its time is up, by its time limit or the job's deadline."""
        return min(self.times_out_at, self.deadline_at)

    @property
    def ended(self) -> bool:
        """Whether the outcome can be decided: the handler is over, or given up on."""
        if len(self.messages):
            return False
        over = self._task is None or self._task.done()
        return over or (self.abandoned_at is not None and self._elapsed >= self.abandoned_at)

    @property
    def has_event(self) -> bool:
        """Whether there is a report to take, or the handler is over."""
        return bool(len(self.messages)) or self._handler_done

    @property
    def is_sleeping(self) -> bool:
        """Whether only time moves the handler on."""
        return self._services.clock.is_sleeping(self) or self.children.is_waiting

    def take_message(self) -> Report | ClusterCall:
        """Take the oldest report or call; after a report the handler waits for `resume`."""
        if isinstance(first := self.messages.pop_oldest(), Report):
            self.reports.append(first)
            self._unacknowledged.append(first)
        return first

    def resume(self) -> None:
        """Let the handler go on after what was taken."""
        while self._unacknowledged:
            self._unacknowledged.pop().acknowledge()

    def check_timeout(self) -> bool:
        """Stop an attempt whose time is up; returns whether it was."""
        if self.stopped is None and not self._handler_done and self._elapsed >= self.ends_at:
            self.stop(self.stop_at_end)
            return True
        return False

    @property
    def stop_at_end(self) -> Stop:
        """Why its handler is stopped once its time is up."""
        past = self.deadline_at <= self.times_out_at
        return Stop.PAST_DEADLINE if past else Stop.TIMED_OUT

    def stop(self, why: Stop) -> None:
        """Tell the handler to stop; of several reasons the highest counts."""
        if self._handler_done:
            return
        if self.stopped is not None and _STOP_RANK[why] <= _STOP_RANK[self.stopped]:
            return
        first = self.stopped is None
        self.stopped = why
        self.abandoned_at = self._elapsed + self._stop_grace(why)
        if first:
            self._interrupt()

    def open_steps(self) -> FakeSteps:
        """Return what keeps the results of steps."""
        return self.steps

    def outcome(self) -> PhaseChange | None:
        """Return what is to be stored; None if the job is no longer this attempt's."""
        self.messages.close()
        self.children.stop()
        self.steps.close()
        if self.stopped is not None and self._early_outcome is None:
            jitter_sample = self._services.draw
            return outcomes.stopped(
                self.job, self.stopped, now=self._now, jitter_sample=jitter_sample
            )
        if self._early_outcome is not None:
            return self._early_outcome()
        assert self._task is not None
        if self._task.cancelled():
            self.error = HandlerExitError("the handler cancelled itself")
        else:
            self.error = self._task.exception()
        if self.error is not None and self.steps.open_waits and outcomes.asks_to_park(self.error):
            self.error = None
            waiting = first_waits(self.steps.open_waits)
            return park(self.job, self.steps.waits, waiting, now=self._now)
        return self._succeeded(self._task) if self.error is None else self._failed()

    async def abandon(self, wait_seconds: float) -> None:
        """Let go of the handler, whatever it does; waits this many real seconds for its end."""
        self.stop(Stop.FENCED)
        self.messages.close()
        self.steps.close()
        self.resume()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=wait_seconds)
            self._cancel_abandoned(self._task)

    # ---- how it goes on

    def _cancel_abandoned(self, task: HandlerTask) -> None:
        if self._context is not None and not task.done():
            self._context.abandoned = True
            task.cancel()

    def _start_handler(self, payload: object) -> None:
        bench = self._services
        job = SteppedContext(
            make_job_info(self.job, self._obj),
            self.messages,
            remaining=lambda: self.ends_at - bench.clock.elapsed,
            max_bytes=bench.max_bytes,
            children=self.children,
            steps=self,
            files=bench.arrays.files,
        )
        job.holds_for_children = bench.holds_for_children
        job.messages, job.in_thread = self.messages, not runs_in_loop(self._handler)
        context = context_with_fake_time(HandlerTime(bench.clock, self))
        self._context = job
        work = call_handler(bench.app, self._handler, job, payload, bench.resources)
        self._task = asyncio.get_running_loop().create_task(work, context=context)
        self._task.add_done_callback(_retrieve_exception)
        self._task.add_done_callback(lambda _: bench.wake())

    def _interrupt(self) -> None:
        if self._context is not None:
            self._context.stop()
        if self._task is not None:
            self._task.cancel()

    def _succeeded(self, task: HandlerTask) -> PhaseChange:
        result, limit = task.result(), self._services.max_bytes
        return outcomes.succeeded(self.job, self._handler, result, max_bytes=limit, now=self._now)

    def _failed(self) -> PhaseChange:
        assert self.error is not None
        bench = self._services
        return outcomes.failed(
            self.job, self.error, bench.app.categories, now=self._now, jitter_sample=bench.draw
        )

    def _stop_grace(self, why: Stop) -> float:
        if why not in {Stop.CANCELLED, Stop.PAST_DEADLINE}:
            return STOP_GRACE_SECONDS
        grace = self._cancel_grace()
        return max(grace - 1.0, grace / 2)

    def _cancel_grace(self) -> float:
        for grace in (self.job.cancel_grace_seconds, self._queue_cancel_grace):
            if grace is not None:
                return grace
        return DEFAULT_CANCEL_GRACE_SECONDS

    def _deadline_at(self) -> float:
        """Return when on the fake clock the job's deadline is."""
        deadline = self.job.deadline
        if deadline is None:
            return float("inf")
        return self._services.clock.elapsed_at(parse_timestamp(deadline))

    def _execution_timeout(self) -> int:
        return (self.job.effective or BUILT_IN_POLICY).execution_timeout_seconds

    @property
    def _handler_done(self) -> bool:
        return self._task is None or self._task.done()

    @property
    def _now(self) -> str:
        return self._services.clock.text

    @property
    def _elapsed(self) -> float:
        return self._services.clock.elapsed


def _retrieve_exception(task: HandlerTask) -> None:
    """Look at an error that may not count any more, or asyncio would report it as forgotten."""
    if not task.cancelled():
        task.exception()
