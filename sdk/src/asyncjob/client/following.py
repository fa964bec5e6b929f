"""Following a job until it has finished, and jobs as they change; the same wherever they come from.

A watch may break off, be refused or be silent: the job itself is looked at whenever a watch ends,
and at least twice a minute. A server that is away is waited for.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from asyncjob.backoff import backoff_delay
from asyncjob.client.connection import INITIAL_DELAY_SECONDS, Call, Connection
from asyncjob.client.errors import JobGoneError, JobNotFoundError, WaitTimeoutError
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject
from asyncjob.rest.jobs import Job, JobSummary

MAX_SILENCE_SECONDS: Final = 30.0
"""A job that is waited for is read again after this long without news: a stream may be silent
because it is broken. Much less would have each of many waiters read its job all the time."""

MAX_STREAM_SILENCE_SECONDS: Final = 120.0
"""What a stream without end may be silent for: API servers send a bookmark about once a minute, and
gateways a heartbeat every 15 s. Nobody waits for one job there, so a read in between is not needed.
"""

HEALTHY_STREAM_SECONDS: Final = 2.0
"""A stream that ends sooner did not work: the pause before the next one grows, so that a server
that ends each at once is not asked without a pause."""

GRACE_SECONDS: Final = 1.0
"""A wait may end this much later than it has to."""


class JobSource(Protocol):
    """Where a job is followed: how to look at it, and how to listen to its changes."""

    async def get_job(self, timeout_seconds: float | None) -> Job:
        """Return the job as it is, asking once; raises what that raises.

        None of the requests may take longer than `timeout_seconds`.
        """

    def stream_request(self, last: Job) -> Call:
        """Return the request for a stream of the changes after what was seen."""

    def read_event(self, event: JsonObject, last: Job) -> Job | None:
        """Return the job as an event tells of it; None if that takes another look."""

    def is_idle(self, event: JsonObject) -> bool:
        """Return whether an event tells nothing of the job."""


@dataclass(slots=True)
class _FollowState:
    """What is known of the job, and of the time."""

    job_id: str
    deadline: float | None
    poll_seconds: float
    last: Job | None = None
    can_stream: bool = True
    failures: int = 0

    def next_delay(self) -> float:
        """Return how long to wait after something that failed or ended too soon."""
        self.failures += 1
        return backoff_delay(self.failures, INITIAL_DELAY_SECONDS, self.poll_seconds)

    def read_timeout(self, now: float) -> float | None:
        """Return how long a look may take, in seconds; there is always time for one."""
        return None if self.deadline is None else max(self.deadline - now, GRACE_SECONDS)

    def seconds_left(self, now: float) -> float:
        """Return the seconds left; raises WaitTimeoutError where there are none."""
        if self.deadline is None:
            return MAX_SILENCE_SECONDS
        if now >= self.deadline:
            where = f"is {self.last.phase.value}" if self.last else "could not be read"
            raise WaitTimeoutError(
                f"job {self.job_id} has not finished in time: it {where}", job=self.last
            )
        return self.deadline - now

    def record(self, job: Job) -> bool:
        """Take the job as it is; returns whether anybody would see a difference."""
        before, self.last = self.last, job
        if before is not None and before.uid != job.uid:
            raise JobGoneError(f"job {self.job_id} was deleted, and another has its name")
        return before is None or visible_fields(before) != visible_fields(job)


def visible_fields(job: JobSummary) -> dict[str, object]:
    """Return what makes a change worth telling: all but versions and heartbeats."""
    return job.model_dump(exclude={"resource_version", "updated_at"})


async def follow_job(
    connection: Connection,
    source: JobSource,
    job_id: str,
    *,
    timeout: float | None,  # noqa: ASYNC109  # it ends in an error of its own
    poll_seconds: float,
) -> AsyncGenerator[Job]:
    """Yield the job now and at each change, until it has finished."""
    deadline = None if timeout is None else connection.time() + timeout
    watch = _FollowState(job_id, deadline, poll_seconds)
    while True:
        job = await _get_job(connection, source, watch)
        if watch.record(job):
            yield job
        if job.finished:
            return
        if watch.can_stream:
            async with aclosing(_read_stream(connection, source, watch, job)) as changes:
                async for changed in changes:
                    yield changed
        else:
            left = watch.seconds_left(connection.time())
            await connection.pause(min(watch.poll_seconds, left))
        if watch.last and watch.last.finished:
            return


async def _get_job(connection: Connection, source: JobSource, watch: _FollowState) -> Job:
    while True:
        try:
            return await source.get_job(watch.read_timeout(connection.time()))
        except JobNotFoundError as error:
            if watch.last is None:
                raise
            raise JobGoneError(f"job {watch.job_id} was deleted while it was watched") from error
        except AsyncJobError as error:
            if not error.retryable:
                raise
            left = watch.seconds_left(connection.time())
            await connection.pause(min(watch.next_delay(), left))


async def _read_stream(
    connection: Connection, source: JobSource, watch: _FollowState, job: Job
) -> AsyncGenerator[Job]:
    """Yield changes for as long as the stream says something."""
    silence = min(watch.seconds_left(connection.time()), MAX_SILENCE_SECONDS)
    async with AsyncExitStack() as stack:
        try:
            stream = connection.stream(source.stream_request(job), silence)
            next_event = await stack.enter_async_context(stream)
        except AsyncJobError as error:
            watch.can_stream = error.retryable  # where it may not listen, it looks instead
            await connection.pause(min(watch.next_delay(), silence))
            return
        opened = connection.time()
        while (event := await next_event()) is not None:
            left = watch.seconds_left(connection.time())
            changed = None
            if not source.is_idle(event):
                changed = source.read_event(event, watch.last or job)
                if changed is None:
                    return
                if watch.record(changed):
                    yield changed
            if (changed and changed.finished) or left + GRACE_SECONDS < silence:
                return  # or else the stream might be silent for longer than there is time
    now = connection.time()
    if now - opened < HEALTHY_STREAM_SECONDS:
        await connection.pause(min(watch.next_delay(), watch.seconds_left(now)))


class JobStream(Protocol):
    """Where changes of many jobs come from."""

    async def stream_request(self) -> Call:
        """Return the request for a stream of changes from where the last one ended, or from now."""

    def read_event(self, event: JsonObject) -> JobSummary | None:
        """Return the job that an event tells of; None if of none that is meant."""


async def watch_jobs(connection: Connection, stream: JobStream) -> AsyncGenerator[JobSummary]:
    """Yield jobs as a stream reports them, without end; it is opened again whenever it ends.

    The first try has to succeed; what happens between two streams may go untold.
    """
    opened, failures = False, 0
    while True:
        async with AsyncExitStack() as stack:
            try:
                call = await stream.stream_request()
                next_event = await stack.enter_async_context(
                    connection.stream(call, MAX_STREAM_SILENCE_SECONDS)
                )
            except AsyncJobError as error:
                if not (opened and error.retryable):
                    raise
            else:
                opened, failures = True, 0
                while (event := await next_event()) is not None:
                    job = stream.read_event(event)
                    if job is not None:
                        yield job
        failures += 1
        await connection.pause(backoff_delay(failures, INITIAL_DELAY_SECONDS, MAX_SILENCE_SECONDS))
