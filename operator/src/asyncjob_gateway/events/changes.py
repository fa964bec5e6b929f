"""What streams carry: changes of all jobs that match, or the life of one."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from sse_starlette import ServerSentEvent

from asyncjob.client.errors import JobNotFoundError
from asyncjob.rest.job import Job, JobSummary
from asyncjob_gateway.cache.feed import Change, Feed, Follower
from asyncjob_gateway.cache.filters import Test
from asyncjob_gateway.events.listener import Listener
from asyncjob_gateway.events.streams import AGAIN_MILLISECONDS, Events, Streams

LOOK_SECONDS: Final = 60.0
"""How often a stream without changes looks whether it should end."""

SUMMARY: Final = frozenset(JobSummary.model_fields)

Read = Callable[[], Awaitable[Job]]
Given = tuple[bool, list[Change]]
"""Whether changes were dropped, and those that came since."""


async def all_changes(
    streams: Streams,
    feed: Feed,
    who: Listener,
    test: Test | None,
    since: int | None,
) -> Events:
    """Yield changes of jobs that match, from now on or from after a version, until the stop.

    It also ends once the caller may not follow any more, as every stream does.
    """
    with streams.counted(who.caller), feed.follow(_matching(test), since) as follower:
        yield ServerSentEvent(comment="following", retry=AGAIN_MILLISECONDS)
        while (given := await next_given(streams, follower, who)) is not None:
            lost, changes = given
            if lost:
                streams.metrics.resync()
                yield ServerSentEvent(data="{}", event="resync", id=str(feed.newest))
            for change in changes:
                yield _event(change)


async def one_job(streams: Streams, feed: Feed, who: Listener, read: Read, job_id: str) -> Events:
    """Yield the job as it is, then its changes, until it has finished, is deleted, or the stop."""
    given: Given | None = (True, [])  # it begins with a read, as after changes that were dropped
    seen = 0
    mine = _called(job_id)
    with streams.counted(who.caller), feed.follow(mine) as follower:
        while given is not None:
            lost, changes = given
            job = await _read(read) if lost else None
            if lost and job is None:
                return
            for version, event, over in (*_as_read(job), *map(_as_seen, changes)):
                if version > seen:
                    seen = version
                    yield event
                if over:
                    return
            given = await next_given(streams, follower, who)


async def next_given(streams: Streams, follower: Follower, who: Listener) -> Given | None:
    """Return what has come, or None when the gateway is about to stop, or the caller has to."""
    while not streams.stopping.is_set():
        some = await follower.wait(LOOK_SECONDS)
        if not await who.stands():
            return None
        if some:
            return follower.given()
    return None


async def _read(read: Read) -> Job | None:
    try:
        return await read()
    except JobNotFoundError:
        return None


def _as_read(job: Job | None) -> Iterator[tuple[int, ServerSentEvent, bool]]:
    if job:
        version = int(job.resource_version)
        data = job.model_dump_json(by_alias=True, include=set(SUMMARY))
        yield version, ServerSentEvent(data=data, event="job", id=str(version)), job.finished


def _as_seen(change: Change) -> tuple[int, ServerSentEvent, bool]:
    over = change.deleted or change.entry.summary.finished
    return change.version, _event(change), over


def _event(change: Change) -> ServerSentEvent:
    name = "deleted" if change.deleted else "job"
    data = change.entry.summary.model_dump_json(by_alias=True)
    return ServerSentEvent(data=data, event=name, id=str(change.version))


def _matching(test: Test | None) -> Callable[[Change], bool]:
    return lambda change: test is None or test(change.entry)


def _called(job_id: str) -> Callable[[Change], bool]:
    return lambda change: change.entry.summary.id == job_id
