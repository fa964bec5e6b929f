"""What streams carry: changes of all jobs that match, or the life of one."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from sse_starlette import ServerSentEvent

from asyncjob.client.errors import JobNotFoundError
from asyncjob.rest.job import Job, JobSummary
from asyncjob_gateway.cache.feed import ChangeBuffer, ChangeSubscription, JobChangeEvent
from asyncjob_gateway.cache.filters import JobFilter
from asyncjob_gateway.events.listener import StreamCaller
from asyncjob_gateway.events.streams import RECONNECT_MILLISECONDS, EventStream, StreamLimiter

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
