"""`JobContext`.

What a handler knows of its job and can report about it, and why it may be told to stop.
"""

import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack, overload

import structlog

from asyncjob.app.child_arrays import (
    ARRAY_TTL_SECONDS,
    ChildArrayOptions,
    Items,
    build_child_array_manifest,
)
from asyncjob.app.child_handles import Child, ChildCall, ChildSubmission, seconds_of_limit
from asyncjob.app.child_jobs import (
    ChildJobs,
    ChildRef,
    ChildView,
    ChildWaits,
    HeldChildWaits,
    NoChildJobs,
    SyncOrAsyncFuture,
    map_future,
)
from asyncjob.app.child_manifest import ChildOptions, DependsOn, ParentJob, build_child_manifest
from asyncjob.app.errors import AttemptOverError, StepError, SubmitError
from asyncjob.app.files import NO_FILES, Files
from asyncjob.app.steps import (
    DEFAULT_PAUSE_SECONDS,
    NO_STEPS,
    StepCall,
    StepRunner,
    Steps,
    StepStore,
)
from asyncjob.app.waiting_calls import Forgotten
from asyncjob.app.waits import SignalCall, WaitCall, WaitLimit, seconds_of
from asyncjob.free_json import MAX_STORED_BYTES, normalize, replace_unencodable
from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.base import RetryPolicy
from asyncjob.names import ARRAY_KIND, JOB_KIND
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

    waits: JsonObject = field(default_factory=dict)
    """The records of the waits that earlier attempts have begun, as `status.waits` has them."""

    parks: int = 0
    """How many attempts since the last redrive ended because the job was parked."""

    created_at: str = ""
    """When the job was created, as its `metadata.creationTimestamp` has it."""


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
    PAST_DEADLINE = "past its deadline"
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
        files: Files = NO_FILES,
    ) -> None:
        self.info = info
        self._report_sink = sink
        self._remaining_seconds = remaining
        self._stopping = stopping or threading.Event()
        self._max_bytes = max_bytes
        self._children: ChildJobs = children or NoChildJobs()
        self._submissions: list[ChildSubmission] = []
        self._step_runner: StepRunner = steps or NO_STEPS
        self._files = files
        self._opened_steps: Steps | None = None
        self._opening = threading.Lock()
        self._forgotten = Forgotten()

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
        """Number of this attempt, from 1; an attempt that ended by a park does not count.

        A redrive sets the job's count of parks to 0: those before it do count from then on.
        """
        return self.info.attempt - self.info.parks

    @property
    def fencing_token(self) -> str:
        """`uid/claims`: whatever accepts it only ascending is safe from late writers."""
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
        """Whether the attempt is to stop: cancelled, out of time, or its worker is shutting down.

        An async handler is also interrupted by CancelledError; a sync one has to look.
        """
        return self._stopping.is_set()

    @property
    def seconds_left(self) -> float:
        """Seconds until the attempt's time limit, or the job's deadline if that is sooner."""
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
        for a key that was used before in this attempt, StepRefusedError for a result that cannot be
        kept. No sleep, signal or wait for children may stand in the function: it would keep the
        slot. A kept result that does not fit its type ends the attempt.
        """
        return self._steps.call(key, function, arguments, retries, pause)

    def sleep(
        self,
        key: str,
        duration: timedelta | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> WaitCall:
        """Sleep without a slot: `await job.sleep("cooling-off", hours=24)`.

        A sleep of more than two seconds parks the job: the handler ends here, and is run again from
        its top once the sleep is over. Steps taken and sleeps that are over return at once then. It
        costs no retry, and the time limit of an attempt goes on only while one runs. The end is
        kept by the API server's clock, to a second. In a sync handler: `job.sleep(...).result()`.
        Raises StepError for a key that was used before in this attempt, and for more than a year.
        """
        try:
            parts = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
            total = seconds_of(f"sleep {key!r}", duration, parts)
        except (OverflowError, ValueError) as error:
            raise StepError(f"sleep {key!r}: no such time: {error}") from error
        return self._steps.sleep(key, total)

    @overload
    def signal(
        self, name: str, type_: type[T], *, timeout: WaitLimit | None = None
    ) -> SignalCall[T]: ...

    @overload
    def signal(
        self, name: str, type_: Any = Any, *, timeout: WaitLimit | None = None
    ) -> SignalCall[Any]: ...

    def signal(
        self, name: str, type_: Any = Any, *, timeout: WaitLimit | None = None
    ) -> SignalCall[Any]:
        """Wait for a signal without a slot: `ok = await job.signal("approval", Approval)`.

        A signal that has been sent already returns at once, in this attempt and each later one.
        Otherwise the job is parked: the handler ends here, and is run again from its top once the
        signal has come. In a sync handler: `job.signal(...).result()`. Raises SignalTimeout once
        `timeout`, a timedelta or seconds, has passed since it was first waited for, SignalInvalid
        for a payload that does not fit the type, and StepError for a name that was used before in
        this attempt.
        """
        seconds = None if timeout is None else seconds_of(f"signal {name!r}", timeout)
        return self._steps.signal(name, type_, seconds)

    def signal_sender(self, name: str) -> str:
        """Return who has sent a signal that was received: the user whom the server authenticated.

        Raises StepError for a signal that was not received in this attempt.
        """
        return self._steps.sender_of(name)

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
                self._opened_steps = Steps(
                    info.steps,
                    self.step_store,
                    self._stopping,
                    info.type,
                    info.waits,
                    forgotten=self._forgotten,
                )
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
        deadline: int | None = None,
        depends_on: DependsOn = (),
        concurrency_key: str | None = None,
        deduplication_id: str | None = None,
        traceparent: str | None = None,
    ) -> ChildSubmission:
        """Submit a child job, once however often this job runs: `child = await job.submit(...)`.

        Children are told apart by `key`; without one, by type, payload and all options given. It
        is sent at once, tried for as long as the attempt lives, and stored before this handler's
        success is, and before its job is parked. `queue` and `priority` are this job's unless
        given, `traceparent` that of the span it is called in or else this job's; `timeout` and
        `deadline` are in seconds. Raises SubmitRefusedError for what cannot be a job; the
        submission raises SubmitError.
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
            deadline=deadline,
            depends_on=depends_on,
            concurrency_key=concurrency_key,
            deduplication_id=deduplication_id,
            traceparent=traceparent or current_traceparent(),
        )
        order = build_child_manifest(self._as_parent(), type_, payload, options)
        return self.track_submission(order.name, self._children.submit(order))

    def map(
        self,
        type_: str,
        items: Items,
        *,
        key: str | None = None,
        name: str | None = None,
        payload: object = None,
        queue: str | None = None,
        priority: int | None = None,
        chunk_size: int | None = None,
        parallelism: int | None = None,
        item_retries: int | None = None,
        item_timeout: int | None = None,
        results: str | None = None,
        max_failed: int | None = None,
        max_failed_percent: int | None = None,
        timeout: int | None = None,
        retry: RetryPolicy | None = None,
        ttl: int = ARRAY_TTL_SECONDS,
    ) -> ChildSubmission:
        """Run an item handler over many items, as an AsyncArray: `await job.map("thumb", rows)`.

        `items` are the items themselves (at most 256 KiB as JSON), how many there are, or the URI
        of a file of JSON lines or CSV that workers read. It is submitted once however often this
        job runs, as by `submit`, and told apart from others by `key`, or else by all that is given.
        What it gives is a child like a job's: `view = await array.wait()` waits without a slot, and
        `view.items` has the counts. Other options are those of an array, times in seconds; `queue`
        and `priority` are this job's unless given. `ttl` seconds after its end it is removed, but
        not before this job has ended. Raises SubmitRefusedError for what cannot be an array.
        """
        options = ChildArrayOptions(
            key=key,
            name=name,
            payload=payload,
            queue=queue,
            priority=priority,
            chunk_size=chunk_size,
            parallelism=parallelism,
            item_retries=item_retries,
            item_timeout=item_timeout,
            results=results,
            max_failed=max_failed,
            max_failed_percent=max_failed_percent,
            timeout=timeout,
            retry=retry,
            ttl=ttl,
        )
        order = build_child_array_manifest(self._as_parent(), type_, items, options)
        return self.track_submission(order.name, self._children.submit(order), ARRAY_KIND)

    def _as_parent(self) -> ParentJob:
        info = self.info
        return ParentJob(info.name, info.uid, info.queue, info.priority, info.traceparent)

    def gather(
        self, *children: Child, timeout: WaitLimit | None = None, check: bool = False
    ) -> ChildCall[list[ChildView]]:
        """Wait until all these jobs and arrays have finished: `await job.gather(*children)`.

        They come in the order in which they are given. It is one wait without a slot, which wakes
        the job once, however many they are, but for each hundred that are unfinished. Errors are
        those of `child.wait`, raised once all have finished: that of the first child in order. In a
        sync handler: `job.gather(...).result()`.
        """
        refs = [child.ref for child in children]
        what = f"the wait for {len(refs)} children"
        limit = seconds_of_limit(what, timeout)
        call = ChildCall(self._open_child_waits, refs, limit, check, list)
        if refs:
            call.expect(what, self._forgotten)
        return call

    def _open_child_waits(self) -> ChildWaits:
        """Return what waits for children; the steps are opened for it at the first wait."""
        if self._step_runner is NO_STEPS:
            return HeldChildWaits(self._children)
        return self._steps.child_waits(self._children)

    def children(self) -> SyncOrAsyncFuture[Sequence[ChildView]]:
        """Return all jobs that this one has submitted, in whichever attempt; not its arrays."""
        return SyncOrAsyncFuture(self._children.list())

    @property
    def child_jobs(self) -> ChildJobs:
        """What submits children; for a runner of the handler that is in another process."""
        return self._children

    @property
    def files(self) -> Files:
        """Reads files of items, from the folders and stores that payloads are read from."""
        return self._files

    def track_submission(
        self, name: str, future: "concurrent.futures.Future[ChildRef]", kind: str = JOB_KIND
    ) -> ChildSubmission:
        """Have a child that is on its way settled with this job, no matter who has submitted it."""
        stored = map_future(future, self._child)
        submission = ChildSubmission(name, stored, kind)
        self._submissions.append(submission)
        return submission

    def _child(self, ref: ChildRef) -> Child:
        return Child(ref, self._children, self._open_child_waits, self._forgotten)

    async def wait_for_submissions(self, *, parking: bool = False) -> None:
        """Wait for submissions that nobody has waited for; raises the first error of these.

        Called by the runner of the handler, before its success counts and before its job is parked
        (`parking`). Raises StepError for a step or a wait that was not taken. As the job is parked
        neither counts: the next attempt submits and takes what it wants, and is told of an error
        there.
        """
        if not parking:
            if self._opened_steps is not None:
                self._opened_steps.check_all_taken()
            self._forgotten.check()
        for submission in self._submissions:
            if not submission.retrieved:
                try:
                    await submission.wait_stored()
                except SubmitError as error:
                    if not parking or isinstance(error, AttemptOverError):
                        raise

    def stop(self) -> None:
        """Tell the handler to stop; called by its runner."""
        self._stopping.set()
        self._children.stop()
