"""Changes handed to followers: in order, without gaps, and bounded."""

import asyncio

import pytest

from asyncjob_gateway.cache.changes import (
    MAX_BUFFERED_CHANGES,
    MAX_LAG,
    ChangeBuffer,
    JobChangeEvent,
)
from asyncjob_gateway.cache.jobs import JobCache
from support.objects.gateway_jobs import shown, stored


@pytest.fixture
def cache() -> JobCache:
    made = JobCache(ChangeBuffer())
    made.changes.on_listed(100)
    made.replace([])
    return made


def everything(_change: JobChangeEvent) -> bool:
    return True


def about_seven(one: JobChangeEvent) -> bool:
    return one.job.summary.id == "job-7"


def change(cache: JobCache, number: int, version: int) -> None:
    cache.apply(shown("MODIFIED", stored(number, version)))


async def test_who_follows_gets_what_comes_from_now_on(cache: JobCache) -> None:
    change(cache, 1, 101)
    with cache.changes.subscribe(everything) as follower:
        change(cache, 2, 102)
        cache.apply(shown("DELETED", stored(2, 103)))
        assert await follower.wait(1)
        lost, changes = follower.drain()
    assert not lost
    assert [(one.version, one.deleted) for one in changes] == [(102, False), (103, True)]


async def test_who_comes_back_gets_what_came_since(cache: JobCache) -> None:
    for version in range(101, 105):
        change(cache, version, version)
    with cache.changes.subscribe(everything, since=102) as follower:
        assert [one.version for one in follower.drain()[1]] == [103, 104]


async def test_who_was_away_for_too_long_has_to_list_again(cache: JobCache) -> None:
    change(cache, 7, 101)
    change(cache, 7, 102)
    for version in range(103, 103 + MAX_BUFFERED_CHANGES):
        change(cache, 1, version)
    with cache.changes.subscribe(about_seven, since=101) as follower:
        assert follower.drain() == (True, [])
    with cache.changes.subscribe(about_seven, since=102) as follower:
        assert follower.drain() == (False, [])
    with cache.changes.subscribe(everything, since=99) as before_the_list:
        assert before_the_list.drain() == (True, [])


async def test_who_reads_too_slowly_has_to_list_again_and_goes_on(cache: JobCache) -> None:
    with cache.changes.subscribe(everything) as follower:
        for version in range(101, 102 + MAX_LAG):
            change(cache, 1, version)
        assert follower.drain() == (True, [])
        change(cache, 1, 5000)
        assert [one.version for one in follower.drain()[1]] == [5000]


async def test_a_new_list_has_everybody_list_again(cache: JobCache) -> None:
    with cache.changes.subscribe(everything) as follower:
        cache.changes.on_listed(200)
        cache.replace([stored(1)])
        assert await follower.wait(1)
        assert follower.drain() == (True, [])
    assert cache.changes.newest_version == 200


async def test_an_own_write_is_not_handed_on_before_the_watch_shows_it(cache: JobCache) -> None:
    with cache.changes.subscribe(everything) as follower:
        cache.put_written(stored(2, 105))
        change(cache, 1, 104)
        change(cache, 2, 105)
        assert [one.version for one in follower.drain()[1]] == [104, 105]


async def test_a_wait_ends_when_woken(cache: JobCache) -> None:
    with cache.changes.subscribe(everything) as follower:
        waiting = asyncio.create_task(follower.wait(60))
        await asyncio.sleep(0)
        cache.changes.wake_all()
        assert await waiting
