"""The moments at which two operators that both believe to lead could do harm, one by one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from support.parts.cron_replicas import CronJobStore, Replica, store_of

ONE = {"misfirePolicy": "FireOnce", "successfulJobsHistoryLimit": 0}


def played(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(play())


async def until_about_to_create(replica: Replica) -> None:
    for _ in range(40):
        if replica.session.sent_at is not None:
            return
        await replica.step()
    pytest.fail("it never came to create")


async def until_reserved(replica: Replica, store: CronJobStore) -> None:
    for _ in range(40):
        if store.reserved:
            return
        await replica.step()
    pytest.fail("it never came to reserve")


def test_while_a_creation_may_be_under_way_nobody_else_creates_the_run() -> None:
    async def play() -> None:
        store = store_of(**ONE)
        first, second = Replica(store, "a"), Replica(store, "bb")
        await until_about_to_create(first)
        for _ in range(4):
            store.now += 1
            await second.run()
        assert store.created == []
        await first.run()
        [name] = store.created
        store.finish(name)
        await first.run()
        await second.run()
        assert (name in store.jobs, len(store.created)) == (False, 1)

    played(play)


def test_a_holder_that_was_frozen_creates_nothing_for_which_another_has_acted() -> None:
    async def play() -> None:
        store = store_of(**ONE)
        frozen, second = Replica(store, "a"), Replica(store, "bb")
        await until_reserved(frozen, store)
        second.watch()
        second.schedules.evaluate("uid-nightly")
        store.now += 16
        await second.run()
        [name] = store.created
        store.finish(name)
        await second.run()
        assert name not in store.jobs
        for _ in range(30):
            await frozen.step()
        assert store.created == [name]

    played(play)


def test_a_holder_that_was_frozen_between_two_runs_does_not_go_on() -> None:
    async def play() -> None:
        store = store_of(misfirePolicy="FireAll", successfulJobsHistoryLimit=0)
        frozen, second = Replica(store, "a"), Replica(store, "bb")
        await until_about_to_create(frozen)
        await frozen.step()
        assert len(store.created) == 1
        second.watch()
        store.now += 16
        await second.run()
        for name in store.live:
            store.finish(name)
        await second.run()
        assert len(store.created) == 2
        for _ in range(30):
            await frozen.step()
        assert len(store.created) == 2

    played(play)


def test_a_holder_that_dies_leaves_its_runs_to_another_which_waits_until_it_cannot_act() -> None:
    async def play() -> None:
        store = store_of(**ONE)
        first, second = Replica(store, "a"), Replica(store, "bb")
        await until_reserved(first, store)
        await first.crash()
        for _ in range(14):
            await second.run()
            store.now += 1
        assert store.created == []
        store.now += 2
        await second.run()
        assert len(store.created) == 1
        assert not store.reserved

    played(play)


@pytest.mark.parametrize("policy", ["Forbid", "Replace"])
def test_who_has_not_seen_an_unfinished_run_yet_lists_before_it_decides(policy: str) -> None:
    async def play() -> None:
        store = store_of(concurrencyPolicy=policy, misfirePolicy="FireOnce")
        first, blind = Replica(store, "a"), Replica(store, "bb")
        await first.run()
        assert len(store.live) == 1
        store.now += 3600
        blind.schedules.on_update(store.cron)
        for _ in range(40):
            await blind.step()
        assert store.overlaps == []
        assert len(store.created) == 1

    played(play)


def test_a_run_seen_to_come_and_go_before_its_creator_died_is_not_created_again() -> None:
    async def play() -> None:
        store = store_of(**ONE)
        first, second = Replica(store, "a"), Replica(store, "bb")
        await until_about_to_create(first)
        await first.step()
        second.watch()
        await first.crash()
        [name] = store.created
        store.finish(name)
        store.delete(name)
        for _ in range(3):
            store.now += 16
            await second.run()
        assert store.created == [name]
        assert not store.reserved

    played(play)


def test_a_decision_on_a_version_that_has_changed_is_not_carried_out() -> None:
    async def play() -> None:
        store = store_of(**ONE)
        both = [Replica(store, "a"), Replica(store, "bb")]
        for _ in range(40):
            for replica in both:
                await replica.step()
        assert len(store.created) == 1

    played(play)


def test_a_clock_that_goes_back_a_day_runs_nothing_again_and_one_ahead_nothing_twice() -> None:
    async def play() -> None:
        store = store_of(misfirePolicy="FireAll", misfireLimit=100)
        replica = Replica(store, "a")
        await replica.run()
        assert len(store.created) == 2
        replica.skew = -86_400.0
        await replica.run()
        assert len(store.created) == 2
        replica.skew = 86_400.0
        await replica.run(200)
        assert len(store.created) == 26
        replica.skew = 0.0
        store.now += 86_400.0
        await replica.run()
        assert len(store.created) == len(set(store.created)) == 26
        store.now += 3600.0
        await replica.run()
        assert len(store.created) == 27

    played(play)
