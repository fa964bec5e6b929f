"""Following a job until it has finished, and jobs as they change; the same wherever they come from.

A watch may break off, be refused or be silent: the job itself is looked at whenever a watch ends,
and at least twice a minute. A server that is away is waited for.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, Protocol

from asyncjob.client.errors import (
    JobGoneError,
    JobNotFoundError,
    WaitTimeoutError,
)
from asyncjob.client.steps import (
    INITIAL_DELAY_SECONDS,
    Answer,
    Call,
    Emissions,
    Emit,
    Listen,
    Next,
    Pause,
    Step,
    Steps,
    with_timeout,
)
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject
from asyncjob.rest.jobs import Job, JobSummary

MAX_SILENCE_SECONDS: Final = 30.0
MAX_STREAM_SILENCE_SECONDS: Final = 120.0
HEALTHY_STREAM_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 1.0
"""A wait may end so much later than it has to."""


class JobSource(Protocol):
    """Where a job is followed: how to look at it, and how to listen to its changes."""

    def get_job(self) -> Steps[Job]:
        """Return the job as it is, asking once; raises what that raises."""

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
    delay: float = INITIAL_DELAY_SECONDS

    def next_delay(self) -> float:
        """Return how long to wait after something that failed or ended too soon."""
        pause, self.delay = self.delay, min(self.delay * 2, self.poll_seconds)
        return pause

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


def follow_job(
    source: JobSource, job_id: str, *, timeout: float | None, poll_seconds: float
) -> Emissions[Job]:
    """Hand out the job now and at each change, until it has finished."""
    now = (yield Pause()).at
    watch = _FollowState(job_id, None if timeout is None else now + timeout, poll_seconds)
    while True:
        job = yield from _get_job(source, watch)
        if watch.record(job):
            yield Emit(job)
        if job.finished:
            return
        if watch.can_stream:
            yield from _read_stream(source, watch, job)
        else:
            left = watch.seconds_left((yield Pause()).at)
            yield Pause(min(watch.poll_seconds, left))
        if watch.last and watch.last.finished:
            return


def _get_job(source: JobSource, watch: _FollowState) -> Steps[Job]:
    while True:
        try:
            hurry = watch.read_timeout((yield Pause()).at)
            job = yield from with_timeout(source.get_job(), hurry)
        except JobNotFoundError as error:
            if watch.last is None:
                raise
            raise JobGoneError(f"job {watch.job_id} was deleted while it was watched") from error
        except AsyncJobError as error:
            if not error.retryable:
                raise
            left = watch.seconds_left((yield Pause()).at)
            yield Pause(min(watch.next_delay(), left))
        else:
            return job


def _read_stream(source: JobSource, watch: _FollowState, job: Job) -> Emissions[Job]:
    """Hand out changes for as long as the stream says something."""
    silence = min(watch.seconds_left((yield Pause()).at), MAX_SILENCE_SECONDS)
    opened = yield from _open_stream(source, watch, job, silence)
    if opened is None:
        return
    while (event := (yield from _next_event())) is not None:
        left = watch.seconds_left((yield Pause()).at)
        more = yield from _handle_event(source, watch, event, job)
        if not more or left + GRACE_SECONDS < silence:
            return  # or else the stream might be silent for longer than there is time
    now = (yield Pause()).at
    if now - opened < HEALTHY_STREAM_SECONDS:
        yield Pause(min(watch.next_delay(), watch.seconds_left(now)))


def _handle_event(
    source: JobSource, watch: _FollowState, event: JsonObject, job: Job
) -> Generator[Step | Emit[Job], Answer, bool]:
    """Hand out what an event tells; return whether the stream may tell more."""
    if source.is_idle(event):
        return True
    changed = source.read_event(event, watch.last or job)
    if changed is None:
        return False
    if watch.record(changed):
        yield Emit(changed)
    return not changed.finished


def _open_stream(
    source: JobSource, watch: _FollowState, job: Job, silence: float
) -> Steps[float | None]:
    """Open the stream and return when; None where that fails, after a pause."""
    try:
        return (yield Listen(source.stream_request(job), silence)).at
    except AsyncJobError as error:
        watch.can_stream = error.retryable  # where it may not listen, it looks instead
        yield Pause(min(watch.next_delay(), silence))
        return None


def _next_event() -> Steps[JsonObject | None]:
    """Return the next event; None once the stream has ended, however: a look tells the rest."""
    try:
        answer = yield Next()
    except AsyncJobError:
        return None
    return None if answer.body is None else answer.object


class JobStream(Protocol):
    """Where changes of many jobs come from."""

    def stream_request(self) -> Steps[Call]:
        """Return the request for a stream of changes from where the last one ended, or from now."""

    def read_event(self, event: JsonObject) -> JobSummary | None:
        """Return the job that an event tells of; None if of none that is meant."""


def watch_jobs(stream: JobStream) -> Emissions[JobSummary]:
    """Hand out jobs as a stream tells of them, for ever; it is opened anew whenever it ends.

    The first try has to succeed; what happens between two streams may go untold.
    """
    opened, pause = False, INITIAL_DELAY_SECONDS
    while True:
        try:
            call = yield from stream.stream_request()
            yield Listen(call, MAX_STREAM_SILENCE_SECONDS)
        except AsyncJobError as error:
            if not (opened and error.retryable):
                raise
        else:
            opened, pause = True, INITIAL_DELAY_SECONDS
            while (event := (yield from _next_event())) is not None:
                job = stream.read_event(event)
                if job is not None:
                    yield Emit(job)
        yield Pause(pause)
        pause = min(pause * 2, MAX_SILENCE_SECONDS)
