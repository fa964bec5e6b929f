"""`JobContext`.

What a handler knows of its job and can report about it, and why it may be told to stop.
"""

import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack, overload

import structlog

from asyncjob.app.child_jobs import (
    Child,
    ChildJobs,
    ChildRef,
    ChildSubmission,
    ChildView,
    NoChildJobs,
    SyncOrAsyncFuture,
    map_future,
)
from asyncjob.app.child_manifest import ChildOptions, DependsOn, ParentJob, build_child_manifest
from asyncjob.app.steps import (
    DEFAULT_PAUSE_SECONDS,
    NO_STEPS,
    StepCall,
    StepRunner,
    Steps,
    StepStore,
)
from asyncjob.free_json import MAX_STORED_BYTES, normalize, replace_unencodable
from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.base import RetryPolicy
from asyncjob.tracing.context import current_traceparent, trace_id_of

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


@dataclass(frozen=True, slots=True)
class JobParent:
    """The job that submitted this one; `name` is None where only its UID is known."""

    uid: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class JobInfo:
    """The facts of one attempt; they do not change while it runs."""

    namespace: str
    name: str
    uid: str
    type: str
    queue: str
    attempt: int
    retries: int = 0
    max_retries: int = 0
    last_checkpoint: Json = None
    request: JsonObject = field(default_factory=dict)
    traceparent: str | None = None
    priority: int = 0
    parent: JobParent | None = None
    scheduled_time: str | None = None
    steps: JsonObject = field(default_factory=dict)
    """The records of the steps that earlier attempts have taken, as `status.steps` has them."""


class ReportSink(Protocol):
    """Takes what a handler reports; called from the handler's thread."""

    def progress(self, percent: int, message: str | None) -> None:
        """Note how far the handler is; stored soon, the newest wins."""

    def checkpoint(self, value: Json) -> None:
        """Note where to resume; stored soon, the newest wins."""


class ReportAck:
    """What reporting returns: nothing to wait for, but `await` is allowed."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        """Return at once."""
        yield from ()


REPORT_ACK = ReportAck()


class Stop(StrEnum):
    """Why a running handler is told to stop; a later one in this list outranks an earlier one."""

    DRAINING = "draining"
    TIMED_OUT = "timed out"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    FENCED = "fenced"


__all__ = ["JobContext", "JobInfo", "JobParent", "ReportSink"]


class JobContext:
    """The job, as its handler sees it. In a sync handler the calls are plain, without `await`."""

    def __init__(
        self,
        info: JobInfo,
        sink: ReportSink,
        *,
        remaining: Callable[[], float],
        stopping: threading.Event | None = None,
        max_bytes: int = MAX_STORED_BYTES,
        children: ChildJobs | None = None,
        steps: StepRunner | None = None,
    ) -> None:
        self.info = info
        self._report_sink = sink
        self._remaining_seconds = remaining
        self._stopping = stopping or threading.Event()
        self._max_bytes = max_bytes
        self._children: ChildJobs = children or NoChildJobs()
        self._submissions: list[ChildSubmission] = []
        self._step_runner: StepRunner = steps or NO_STEPS
        self._opened_steps: Steps | None = None
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.info.name

    @cached_property
    def log(self) -> structlog.typing.FilteringBoundLogger:
        """A structlog logger that says which job, attempt and trace; usable from any thread."""
        info = self.info
        bound: dict[str, object] = {
            "job": info.name,
            "namespace": info.namespace,
            "type": info.type,
            "attempt": info.attempt,
        }
        if self.trace_id:
            bound["trace_id"] = self.trace_id
        logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**bound)
        return logger

    @property
    def uid(self) -> str:
        """UID of the job: the same for all its attempts, and for no other job ever."""
        return self.info.uid

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1; it never shrinks."""
        return self.info.attempt

    @property
    def fencing_token(self) -> str:
        """`uid/attempt`: whatever accepts it only ascending is safe from late writers."""
        return f"{self.info.uid}/{self.info.attempt}"

    @property
    def last_checkpoint(self) -> Any:
        """What an earlier attempt saved last, JSON of the handler's own shape; None at first."""
        return self.info.last_checkpoint

    @property
    def request(self) -> Mapping[str, Json]:
        """Headers, route and query parameters of the request that submitted the job."""
        return self.info.request

    @property
    def scheduled_time(self) -> datetime | None:
        """The time that a run of a cron job is for, in UTC; None for any other job.

        A late or backfilled run has its own time here, not that of its start. None, too, where
        somebody has written something else than a time into the job's annotation.
        """
        scheduled = self.info.scheduled_time
        return try_parse_timestamp(scheduled) if scheduled else None

    @property
    def parent(self) -> JobParent | None:
        """The job that submitted this one, if one did."""
        return self.info.parent

    @property
    def traceparent(self) -> str | None:
        """W3C trace context: that of this attempt where the worker traces, else the submitter's."""
        return self.info.traceparent

    @property
    def trace_id(self) -> str | None:
        """The trace id within `traceparent`, 32 hexadecimal digits."""
        return trace_id_of(self.info.traceparent)

    @property
    def cancelled(self) -> bool:
        """Whether the attempt is to stop: cancelled, timed out, or its worker is shutting down.

        An async handler is also interrupted by CancelledError; a sync one has to look.
        """
        return self._stopping.is_set()

    @property
    def seconds_left(self) -> float:
        """Seconds until the attempt's time limit."""
        return self._remaining_seconds()

    def progress(self, percent: float, message: str | None = None) -> ReportAck:
        """Report how far the work is, 0 to 100, and what it is doing."""
        text = replace_unencodable(message) if message else None
        self._report_sink.progress(min(100, max(0, int(percent))), text)
        return REPORT_ACK

    def checkpoint(self, value: object) -> ReportAck:
        """Save where to resume: any JSON, replaced whole; stored within about a second.

        Raises FreeJsonError if the value is not JSON or too large; a handler that lets it through
        ends as a dead letter, because no retry would help.
        """
        checked = normalize(value, what="the checkpoint", max_bytes=self._max_bytes)
        self._report_sink.checkpoint(checked)
        return REPORT_ACK

    @overload
    def step(
        self,
        key: str,
        function: Callable[[Unpack[Arguments]], Awaitable[T]],
        *arguments: *Arguments,
        retries: int = 0,
        pause: float = DEFAULT_PAUSE_SECONDS,
    ) -> StepCall[T]: ...

    @overload
    def step(
        self,
        key: str,
        function: Callable[[Unpack[Arguments]], T],
        *arguments: *Arguments,
        retries: int = 0,
        pause: float = DEFAULT_PAUSE_SECONDS,
    ) -> StepCall[T]: ...

    def step(
        self,
        key: str,
        function: Callable[[Unpack[Arguments]], Any],
        *arguments: *Arguments,
        retries: int = 0,
        pause: float = DEFAULT_PAUSE_SECONDS,
    ) -> StepCall[Any]:
        """Call a function once per job: `receipt = await job.step("charge", charge, card)`.

        Its result is stored before the next line runs, and each later attempt gets it in place of
        another call; a redrive goes on from the steps done, a rerun takes them all again. The
        function may run more than once, if the worker dies before the result is stored. The result
        is any JSON, typed by the function's return annotation. In a sync handler:
        `job.step(...).result()`. A step that raises is tried again `retries` times by itself,
        after `pause` seconds, doubled each time; then its error is the handler's. Raises StepError
        for a key that was used before in this attempt, and where a kept result does not fit its
        type; StepRefusedError for a result that cannot be kept.
        """
        return self._steps.call(key, function, arguments, retries, pause)

    @property
    def steps_done(self) -> frozenset[str]:
        """Keys of the steps that earlier attempts have taken: this one does not take them again."""
        return frozenset(self.info.steps)

    @property
    def step_store(self) -> StepStore:
        """Keeps the results of steps; for a runner of the handler that is in another process."""
        return self._step_runner.open_steps()

    @property
    def _steps(self) -> Steps:
        with self._opening:  # a sync handler may ask in several threads
            if self._opened_steps is None:
                info = self.info
                self._opened_steps = Steps(info.steps, self.step_store, self._stopping, info.type)
            return self._opened_steps

    def submit(
        self,
        type_: str,
        payload: object = None,
        *,
        key: str | None = None,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        retry: RetryPolicy | None = None,
        timeout: int | None = None,
        not_before: datetime | str | None = None,
        not_after: datetime | str | None = None,
        depends_on: DependsOn = (),
        concurrency_key: str | None = None,
        deduplication_id: str | None = None,
        traceparent: str | None = None,
    ) -> ChildSubmission:
        """Submit a child job, once however often this job runs: `child = await job.submit(...)`.

        Children are told apart by `key`; without one, by type, payload and all options given. It
        is sent at once, tried for as long as the attempt lives, and stored before the success of
        this handler is. `queue` and `priority` are this job's unless given, `traceparent` that of
        the span it is called in or else this job's; `timeout` is in seconds. Raises
        SubmitRefusedError for what cannot be a job; the submission raises SubmitError.
        """
        options = ChildOptions(
            key=key,
            name=name,
            queue=queue,
            priority=priority,
            retry=retry,
            timeout=timeout,
            not_before=not_before,
            not_after=not_after,
            depends_on=depends_on,
            concurrency_key=concurrency_key,
            deduplication_id=deduplication_id,
            traceparent=traceparent or current_traceparent(),
        )
        info = self.info
        parent = ParentJob(info.name, info.uid, info.queue, info.priority, info.traceparent)
        order = build_child_manifest(parent, type_, payload, options)
        return self.track_submission(order.name, self._children.submit(order))

    def children(self) -> SyncOrAsyncFuture[Sequence[ChildView]]:
        """Return all jobs that this one has submitted, in whichever attempt."""
        return SyncOrAsyncFuture(self._children.list())

    @property
    def child_jobs(self) -> ChildJobs:
        """What submits children; for a runner of the handler that is in another process."""
        return self._children

    def track_submission(
        self, name: str, future: "concurrent.futures.Future[ChildRef]"
    ) -> ChildSubmission:
        """Have a child that is on its way settled with this job, no matter who has submitted it."""
        stored = map_future(future, partial(Child, jobs=self._children))
        submission = ChildSubmission(name, stored)
        self._submissions.append(submission)
        return submission

    async def wait_for_submissions(self) -> None:
        """Wait for submissions that nobody has waited for; raises the first error of these.

        Raises StepError for a step that was not taken. Called by the runner of the handler, before
        its success counts.
        """
        if self._opened_steps is not None:
            self._opened_steps.check_all_taken()
        for submission in self._submissions:
            if not submission.retrieved:
                await submission.wait_stored()

    def stop(self) -> None:
        """Tell the handler to stop; called by its runner."""
        self._stopping.set()
        self._children.stop()
