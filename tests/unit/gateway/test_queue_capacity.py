"""Room in a limited queue: counted by several replicas, each with a watch of its own."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from asyncjob.kube.watch import WatchEvent
from asyncjob_gateway.cache import queue_capacity as module
from asyncjob_gateway.cache.changes import ChangeBuffer
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.queue_capacity import QueueCapacity
from support.objects.gateway_jobs import stored


class Store:
    """What replicas write to; each sees it when its watch is let go on."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []


class Replica:
    """A cache, its room, and a watch that stands still unless told."""

    def __init__(self, store: Store) -> None:
        self.cache = JobCache(ChangeBuffer())
        self.cache.replace([])
        self.room = QueueCapacity(self.cache)
        self._store, self._shown = store, 0

    async def submit(self, limit: int) -> bool:
        """Return whether a job was created."""
        async with self.room.hold("default", limit) as place:
            if place is None:
                return False
            number = len(self._store.jobs) + 1
            job: Any = stored(number, number)
            self._store.jobs.append(job)
            self.cache.put_written(job)
            place.version = number
            return True

    def catch_up(self) -> None:
        """Let the watch show all there is."""
        for job in self._store.jobs[self._shown :]:
            self.cache.apply(WatchEvent("ADDED", job))
        self._shown = len(self._store.jobs)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WATCH_WAIT_SECONDS", 0.01)


async def test_one_replica_keeps_the_limit_however_many_come_at_once(impatient: None) -> None:
    store = Store()
    replica = Replica(store)
    async with AsyncExitStack() as under_way:
        places = [await under_way.enter_async_context(replica.room.hold("q", 2)) for _ in range(4)]
    assert [place is not None for place in places] == [True, False, False, False]


async def test_a_replica_runs_ahead_of_its_watch_by_a_share_of_the_room(impatient: None) -> None:
    replica = Replica(Store())
    done = [await replica.submit(80) for _ in range(20)]
    assert done.count(True) == 9  # the room is counted again each time: 80 / 8, 79 / 8, …


@pytest.mark.parametrize("replicas", [2, 3, 5])
async def test_replicas_go_beyond_the_limit_by_one_job_each_but_the_one_that_filled_it(
    replicas: int, impatient: None
) -> None:
    store = Store()
    crowd = [Replica(store) for _ in range(replicas)]
    while await crowd[0].submit(4):  # the others see nothing of it
        crowd[0].catch_up()
    assert len(store.jobs) == 4
    for other in crowd[1:]:
        assert await other.submit(4)
        assert not await other.submit(4)
    assert len(store.jobs) == 4 + replicas - 1
    for one in crowd:
        one.catch_up()
        assert not await one.submit(4)


async def test_requests_that_take_long_while_others_fill_a_small_queue_add_one_job_at_most(
    impatient: None,
) -> None:
    slow = Replica(Store())
    async with AsyncExitStack() as under_way:
        holds = [await under_way.enter_async_context(slow.room.hold("q", 20)) for _ in range(3)]
    assert [hold is not None for hold in holds] == [True, False, False]


async def test_who_is_ahead_goes_on_as_soon_as_the_watch_has_caught_up() -> None:
    replica = Replica(Store())
    assert await replica.submit(4)
    second = asyncio.ensure_future(replica.submit(4))
    await asyncio.sleep(0)
    assert not second.done()
    replica.catch_up()
    assert await second


async def test_room_that_was_not_used_is_free_again() -> None:
    room = Replica(Store()).room
    async with room.hold("q", 1):  # and then the request is refused for something else
        assert room.is_full("q", 1)
    assert not room.is_full("q", 1)


@pytest.mark.parametrize("failed", [0, 1, 2])
async def test_a_submission_that_fails_gives_back_its_own_place_and_no_others(failed: int) -> None:
    store = Store()
    replica = Replica(store)
    room = replica.room
    under_way = [room.hold("default", 100) for _ in range(3)]
    places = [await one.__aenter__() for one in under_way]
    await under_way[failed].__aexit__(None, None, None)
    for number, (one, place) in enumerate(zip(under_way, places, strict=True), start=1):
        if place is not None and number - 1 != failed:
            place.version = number
            await one.__aexit__(None, None, None)
            job: Any = stored(number, number)
            replica.cache.put_written(job)
            replica.cache.apply(WatchEvent("ADDED", job))
    assert not room.is_full("default", 3)
    assert await replica.submit(3)


async def test_a_new_list_shows_what_the_watch_has_missed() -> None:
    replica = Replica(Store())
    assert await replica.submit(4)
    replica.cache.changes.on_listed(1)
    replica.cache.replace([stored(1, 1)])
    assert await replica.submit(4)
