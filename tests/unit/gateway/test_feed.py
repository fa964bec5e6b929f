"""Changes handed to followers: in order, without gaps, and bounded."""

import asyncio

import pytest

from asyncjob_gateway.cache.feed import AHEAD, KEPT, Change, Feed
from asyncjob_gateway.cache.jobs import JobCache
from support.gateway_jobs import shown, stored


@pytest.fixture
def cache() -> JobCache:
    made = JobCache(Feed())
    made.feed.listed(100)
    made.replace([])
    return made


def everything(_change: Change) -> bool:
    return True


def about_seven(one: Change) -> bool:
    return one.entry.summary.id == "job-7"


def change(cache: JobCache, number: int, version: int) -> None:
    cache.apply(shown("MODIFIED", stored(number, version)))


async def test_who_follows_gets_what_comes_from_now_on(cache: JobCache) -> None:
    change(cache, 1, 101)
    with cache.feed.follow(everything) as follower:
        change(cache, 2, 102)
        cache.apply(shown("DELETED", stored(2, 103)))
        assert await follower.wait(1)
        lost, changes = follower.given()
    assert not lost
    assert [(one.version, one.deleted) for one in changes] == [(102, False), (103, True)]


async def test_who_comes_back_gets_what_came_since(cache: JobCache) -> None:
    for version in range(101, 105):
        change(cache, version, version)
    with cache.feed.follow(everything, since=102) as follower:
        assert [one.version for one in follower.given()[1]] == [103, 104]


async def test_who_was_away_for_too_long_has_to_list_anew(cache: JobCache) -> None:
    change(cache, 7, 101)
    change(cache, 7, 102)
    for version in range(103, 103 + KEPT):
        change(cache, 1, version)
    with cache.feed.follow(about_seven, since=101) as follower:
        assert follower.given() == (True, [])
    with cache.feed.follow(about_seven, since=102) as follower:
        assert follower.given() == (False, [])
    with cache.feed.follow(everything, since=99) as before_the_list:
        assert before_the_list.given() == (True, [])


async def test_who_reads_too_slowly_has_to_list_anew_and_goes_on(cache: JobCache) -> None:
    with cache.feed.follow(everything) as follower:
        for version in range(101, 102 + AHEAD):
            change(cache, 1, version)
        assert follower.given() == (True, [])
        change(cache, 1, 5000)
        assert [one.version for one in follower.given()[1]] == [5000]


async def test_a_new_list_has_everybody_list_anew(cache: JobCache) -> None:
    with cache.feed.follow(everything) as follower:
        cache.feed.listed(200)
        cache.replace([stored(1)])
        assert await follower.wait(1)
        assert follower.given() == (True, [])
    assert cache.feed.newest == 200


async def test_an_own_write_is_not_handed_on_before_the_watch_shows_it(cache: JobCache) -> None:
    with cache.feed.follow(everything) as follower:
        cache.wrote(stored(2, 105))
        change(cache, 1, 104)
        change(cache, 2, 105)
        assert [one.version for one in follower.given()[1]] == [104, 105]


async def test_a_wait_ends_when_woken(cache: JobCache) -> None:
    with cache.feed.follow(everything) as follower:
        waiting = asyncio.create_task(follower.wait(60))
        await asyncio.sleep(0)
        cache.feed.wake_all()
        assert await waiting
