"""Server-sent events.

How many streams may be open, in all and per caller, what they carry, and when they end. A stream
can outlive its caller's token or role, so the caller is checked again before anything is sent.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sse_starlette import EventSourceResponse, ServerSentEvent

from asyncjob.client.errors import JobNotFoundError
from asyncjob.rest.jobs import Job, JobSummary
from asyncjob_gateway import problem_types
from asyncjob_gateway.auth.authentication import Caller
from asyncjob_gateway.cache.changes import ChangeBuffer, ChangeSubscription, JobChangeEvent
from asyncjob_gateway.cache.listing import JobFilter
from asyncjob_gateway.errors import RefusedError
from asyncjob_gateway.telemetry import GatewayMetrics


@dataclass(frozen=True, slots=True)
class StreamCaller:
    """A caller and `is_still_allowed`, which is called before anything is handed over."""

    caller: Caller
    is_still_allowed: Callable[[], Awaitable[bool]]


RECONNECT_MILLISECONDS: Final = 2000
"""When a browser comes back after its stream has ended."""

EventStream = AsyncGenerator[ServerSentEvent]


class StreamLimiter:
    """Counts streams, and knows when they have to end."""

    def __init__(
        self, max_streams: int, max_per_caller: int, heartbeat: float, metrics: GatewayMetrics
    ) -> None:
        self.stopping = asyncio.Event()
        self.heartbeat = heartbeat
        self.metrics = metrics
        self._max_streams = max_streams
        self._max_per_caller = max_per_caller
        self._open: Counter[str] = Counter()

    def check_capacity(self, caller: Caller) -> None:
        """Raise RefusedError where the caller has as many streams as there may be."""
        if self._open.total() >= self._max_streams:
            raise RefusedError(problem_types.BUSY, "too many streams are open", retry_after=5.0)
        if self._open[caller.username] >= self._max_per_caller:
            detail = f"{caller.username} has {self._max_per_caller} open streams already"
            raise RefusedError(problem_types.THROTTLED, detail, retry_after=5.0)

    @contextmanager
    def counting(self, caller: Caller) -> Iterator[None]:
        """Count a stream while inside."""
        self._open[caller.username] += 1
        self.metrics.streams.inc()
        try:
            yield
        finally:
            self.metrics.streams.dec()
            self._open[caller.username] -= 1
            if not self._open[caller.username]:
                del self._open[caller.username]

    def response(self, events: EventStream) -> EventSourceResponse:
        """Return the answer that carries the events, with a comment now and then to keep it up.

        A follower that takes nothing is hung up on as everybody else (`limits.connections`).
        """
        return EventSourceResponse(
            events,
            ping=self.heartbeat,
            ping_message_factory=lambda: ServerSentEvent(comment="still here"),
            sep="\n",
        )


CHECK_INTERVAL_SECONDS: Final = 60.0
"""How often a stream without changes looks whether it should end."""

SUMMARY_FIELDS: Final = frozenset(JobSummary.model_fields)

ReadJob = Callable[[], Awaitable[Job]]
ChangeBatch = tuple[bool, list[JobChangeEvent]]
"""Whether changes were dropped, and those that came since."""


async def stream_changes(
    streams: StreamLimiter,
    buffer: ChangeBuffer,
    stream_caller: StreamCaller,
    job_filter: JobFilter | None,
    since: int | None,
) -> EventStream:
    """Yield changes of jobs that match, from now on or from after a version, until the stop.

    It also ends once the caller may not follow any more, as every stream does.
    """
    with (
        streams.counting(stream_caller.caller),
        buffer.subscribe(_matching(job_filter), since) as follower,
    ):
        yield ServerSentEvent(comment="following", retry=RECONNECT_MILLISECONDS)
        while (given := await next_batch(streams, follower, stream_caller)) is not None:
            lost, changes = given
            if lost:
                streams.metrics.count_resync()
                yield ServerSentEvent(data="{}", event="resync", id=str(buffer.newest_version))
            for change in changes:
                yield _to_sse(change)


async def stream_job(
    streams: StreamLimiter,
    buffer: ChangeBuffer,
    stream_caller: StreamCaller,
    read_job: ReadJob,
    job_id: str,
) -> EventStream:
    """Yield the job as it is, then its changes, until it has finished, is deleted, or the stop."""
    given: ChangeBatch | None = (
        True,
        [],
    )  # it begins with a read, as after changes that were dropped
    seen = 0
    mine = _is_job(job_id)
    with streams.counting(stream_caller.caller), buffer.subscribe(mine) as follower:
        while given is not None:
            lost, changes = given
            job = await _read_or_none(read_job) if lost else None
            if lost and job is None:
                return
            for version, event, over in (*_events_of_job(job), *map(_event_of_change, changes)):
                if version > seen:
                    seen = version
                    yield event
                if over:
                    return
            given = await next_batch(streams, follower, stream_caller)


async def next_batch(
    streams: StreamLimiter, subscription: ChangeSubscription, stream_caller: StreamCaller
) -> ChangeBatch | None:
    """Return what has come, or None when the gateway is about to stop, or the caller has to."""
    while not streams.stopping.is_set():
        some = await subscription.wait(CHECK_INTERVAL_SECONDS)
        if not await stream_caller.is_still_allowed():
            return None
        if some:
            return subscription.drain()
    return None


async def _read_or_none(read: ReadJob) -> Job | None:
    try:
        return await read()
    except JobNotFoundError:
        return None


def _events_of_job(job: Job | None) -> Iterator[tuple[int, ServerSentEvent, bool]]:
    if job:
        version = int(job.resource_version)
        data = job.model_dump_json(by_alias=True, include=set(SUMMARY_FIELDS))
        yield version, ServerSentEvent(data=data, event="job", id=str(version)), job.finished


def _event_of_change(change: JobChangeEvent) -> tuple[int, ServerSentEvent, bool]:
    over = change.deleted or change.job.summary.finished
    return change.version, _to_sse(change), over


def _to_sse(change: JobChangeEvent) -> ServerSentEvent:
    name = "deleted" if change.deleted else "job"
    data = change.job.summary.model_dump_json(by_alias=True)
    return ServerSentEvent(data=data, event=name, id=str(change.version))


def _matching(test: JobFilter | None) -> Callable[[JobChangeEvent], bool]:
    return lambda change: test is None or test(change.job)


def _is_job(job_id: str) -> Callable[[JobChangeEvent], bool]:
    return lambda change: change.job.summary.id == job_id
