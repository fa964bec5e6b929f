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
    FIRST_PAUSE_SECONDS,
    Answer,
    Call,
    Emissions,
    Emit,
    Listen,
    Next,
    Pause,
    Step,
    Steps,
    hurried,
)
from asyncjob.errors import AsyncJobError
from asyncjob.json_types import JsonObject
from asyncjob.rest.job import Job, JobSummary

LONGEST_SILENCE_SECONDS: Final = 30.0
SILENCE_OF_MANY_SECONDS: Final = 120.0
HEALTHY_SECONDS: Final = 2.0
LATE_SECONDS: Final = 1.0
"""A wait may end so much later than it has to."""


class Source(Protocol):
    """Where a job is followed: how to look at it, and how to listen to its changes."""

    def look(self) -> Steps[Job]:
        """Return the job as it is, asking once; raises what that raises."""

    def listen(self, seen: Job) -> Call:
        """Return the request for a stream of the changes after what was seen."""

    def read(self, event: JsonObject, seen: Job) -> Job | None:
        """Return the job as an event tells of it; None if that takes another look."""

    def is_idle(self, event: JsonObject) -> bool:
        """Return whether an event tells nothing of the job."""


@dataclass(slots=True)
class _Watch:
    """What is known of the job, and of the time."""

    job_id: str
    until: float | None
    poll_seconds: float
    seen: Job | None = None
    listens: bool = True
    pause: float = FIRST_PAUSE_SECONDS

    def stumbled(self) -> float:
        """Return how long to wait after something that failed or ended too soon."""
        pause, self.pause = self.pause, min(self.pause * 2, self.poll_seconds)
        return pause

    def hurry(self, now: float) -> float | None:
        """Return how long a look may take, in seconds; there is always time for one."""
        return None if self.until is None else max(self.until - now, LATE_SECONDS)

    def left(self, now: float) -> float:
        """Return the seconds left; raises WaitTimeoutError where there are none."""
        if self.until is None:
            return LONGEST_SILENCE_SECONDS
        if now >= self.until:
            where = f"is {self.seen.phase.value}" if self.seen else "could not be read"
            raise WaitTimeoutError(
                f"job {self.job_id} has not finished in time: it {where}", job=self.seen
            )
        return self.until - now

    def is_news(self, job: Job) -> bool:
        """Take the job as it is; returns whether anybody would see a difference."""
        before, self.seen = self.seen, job
        if before is not None and before.uid != job.uid:
            raise JobGoneError(f"job {self.job_id} was deleted, and another has its name")
        return before is None or told(before) != told(job)


def told(job: JobSummary) -> dict[str, object]:
    """Return what makes a change worth telling: all but versions and heartbeats."""
    return job.model_dump(exclude={"resource_version", "updated_at"})


def follow(
    source: Source, job_id: str, *, timeout: float | None, poll_seconds: float
) -> Emissions[Job]:
    """Hand out the job now and at each change, until it has finished."""
    now = (yield Pause()).at
    watch = _Watch(job_id, None if timeout is None else now + timeout, poll_seconds)
    while True:
        job = yield from _look(source, watch)
        if watch.is_news(job):
            yield Emit(job)
        if job.finished:
            return
        if watch.listens:
            yield from _listen(source, watch, job)
        else:
            left = watch.left((yield Pause()).at)
            yield Pause(min(watch.poll_seconds, left))
        if watch.seen and watch.seen.finished:
            return


def _look(source: Source, watch: _Watch) -> Steps[Job]:
    while True:
        try:
            hurry = watch.hurry((yield Pause()).at)
            job = yield from hurried(source.look(), hurry)
        except JobNotFoundError as error:
            if watch.seen is None:
                raise
            raise JobGoneError(f"job {watch.job_id} was deleted while it was watched") from error
        except AsyncJobError as error:
            if not error.retryable:
                raise
            left = watch.left((yield Pause()).at)
            yield Pause(min(watch.stumbled(), left))
        else:
            return job


def _listen(source: Source, watch: _Watch, job: Job) -> Emissions[Job]:
    """Hand out changes for as long as the stream says something."""
    silence = min(watch.left((yield Pause()).at), LONGEST_SILENCE_SECONDS)
    opened = yield from _open(source, watch, job, silence)
    if opened is None:
        return
    while (event := (yield from _next())) is not None:
        left = watch.left((yield Pause()).at)
        more = yield from _take(source, watch, event, job)
        if not more or left + LATE_SECONDS < silence:
            return  # or else the stream might be silent for longer than there is time
    now = (yield Pause()).at
    if now - opened < HEALTHY_SECONDS:
        yield Pause(min(watch.stumbled(), watch.left(now)))


def _take(
    source: Source, watch: _Watch, event: JsonObject, job: Job
) -> Generator[Step | Emit[Job], Answer, bool]:
    """Hand out what an event tells; return whether the stream may tell more."""
    if source.is_idle(event):
        return True
    changed = source.read(event, watch.seen or job)
    if changed is None:
        return False
    if watch.is_news(changed):
        yield Emit(changed)
    return not changed.finished


def _open(source: Source, watch: _Watch, job: Job, silence: float) -> Steps[float | None]:
    """Open the stream and return when; None where that fails, after a pause."""
    try:
        return (yield Listen(source.listen(job), silence)).at
    except AsyncJobError as error:
        watch.listens = error.retryable  # where it may not listen, it looks instead
        yield Pause(min(watch.stumbled(), silence))
        return None


def _next() -> Steps[JsonObject | None]:
    """Return the next event; None once the stream has ended, however: a look tells the rest."""
    try:
        answer = yield Next()
    except AsyncJobError:
        return None
    return None if answer.body is None else answer.object


class Sight(Protocol):
    """Where changes of many jobs come from."""

    def ask(self) -> Steps[Call]:
        """Return the request for a stream of changes from where the last one ended, or from now."""

    def read(self, event: JsonObject) -> JobSummary | None:
        """Return the job that an event tells of; None if of none that is meant."""


def changes(sight: Sight) -> Emissions[JobSummary]:
    """Hand out jobs as a stream tells of them, for ever; it is opened anew whenever it ends.

    The first try has to succeed; what happens between two streams may go untold.
    """
    opened, pause = False, FIRST_PAUSE_SECONDS
    while True:
        try:
            call = yield from sight.ask()
            yield Listen(call, SILENCE_OF_MANY_SECONDS)
        except AsyncJobError as error:
            if not (opened and error.retryable):
                raise
        else:
            opened, pause = True, FIRST_PAUSE_SECONDS
            while (event := (yield from _next())) is not None:
                job = sight.read(event)
                if job is not None:
                    yield Emit(job)
        yield Pause(pause)
        pause = min(pause * 2, LONGEST_SILENCE_SECONDS)
