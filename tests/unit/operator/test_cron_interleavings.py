"""The moments at which two operators that both believe to lead could do harm, one by one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from support.cron_world import Replica, World, world_of

ONE = {"misfirePolicy": "FireOnce", "successfulJobsHistoryLimit": 0}


def played(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(play())


async def until_about_to_create(replica: Replica) -> None:
    for _ in range(40):
        if replica.session.sent_at is not None:
            return
        await replica.step()
    pytest.fail("it never came to create")


async def until_reserved(replica: Replica, world: World) -> None:
    for _ in range(40):
        if world.reserved:
            return
        await replica.step()
    pytest.fail("it never came to reserve")


def test_while_a_creation_may_be_under_way_nobody_else_creates_the_run() -> None:
    async def play() -> None:
        world = world_of(**ONE)
        first, second = Replica(world, "a"), Replica(world, "bb")
        await until_about_to_create(first)
        for _ in range(4):
            world.now += 1
            await second.run()
        assert world.created == []
        await first.run()
        [name] = world.created
        world.finish(name)
        await first.run()
        await second.run()
        assert (name in world.jobs, len(world.created)) == (False, 1)

    played(play)


def test_a_holder_that_was_frozen_creates_nothing_for_which_another_has_acted() -> None:
    async def play() -> None:
        world = world_of(**ONE)
        frozen, second = Replica(world, "a"), Replica(world, "bb")
        await until_reserved(frozen, world)
        second.watch()
        second.schedules.evaluate("uid-nightly")
        world.now += 16
        await second.run()
        [name] = world.created
        world.finish(name)
        await second.run()
        assert name not in world.jobs
        for _ in range(30):
            await frozen.step()
        assert world.created == [name]

    played(play)


def test_a_holder_that_was_frozen_between_two_runs_does_not_go_on() -> None:
    async def play() -> None:
        world = world_of(misfirePolicy="FireAll", successfulJobsHistoryLimit=0)
        frozen, second = Replica(world, "a"), Replica(world, "bb")
        await until_about_to_create(frozen)
        await frozen.step()
        assert len(world.created) == 1
        second.watch()
        world.now += 16
        await second.run()
        for name in world.live:
            world.finish(name)
        await second.run()
        assert len(world.created) == 2
        for _ in range(30):
            await frozen.step()
        assert len(world.created) == 2

    played(play)


def test_a_holder_that_dies_leaves_its_runs_to_another_which_waits_until_it_cannot_act() -> None:
    async def play() -> None:
        world = world_of(**ONE)
        first, second = Replica(world, "a"), Replica(world, "bb")
        await until_reserved(first, world)
        await first.crash()
        for _ in range(14):
            await second.run()
            world.now += 1
        assert world.created == []
        world.now += 2
        await second.run()
        assert len(world.created) == 1
        assert not world.reserved

    played(play)


@pytest.mark.parametrize("policy", ["Forbid", "Replace"])
def test_who_has_not_seen_an_unfinished_run_yet_lists_before_it_decides(policy: str) -> None:
    async def play() -> None:
        world = world_of(concurrencyPolicy=policy, misfirePolicy="FireOnce")
        first, blind = Replica(world, "a"), Replica(world, "bb")
        await first.run()
        assert len(world.live) == 1
        world.now += 3600
        blind.schedules.on_update(world.cron)
        for _ in range(40):
            await blind.step()
        assert world.overlaps == []
        assert len(world.created) == 1

    played(play)


def test_a_run_seen_to_come_and_go_before_its_creator_died_is_not_created_again() -> None:
    async def play() -> None:
        world = world_of(**ONE)
        first, second = Replica(world, "a"), Replica(world, "bb")
        await until_about_to_create(first)
        await first.step()
        second.watch()
        await first.crash()
        [name] = world.created
        world.finish(name)
        world.delete(name)
        for _ in range(3):
            world.now += 16
            await second.run()
        assert world.created == [name]
        assert not world.reserved

    played(play)


def test_a_decision_on_a_version_that_has_changed_is_not_carried_out() -> None:
    async def play() -> None:
        world = world_of(**ONE)
        both = [Replica(world, "a"), Replica(world, "bb")]
        for _ in range(40):
            for replica in both:
                await replica.step()
        assert len(world.created) == 1

    played(play)


def test_a_clock_that_goes_back_a_day_runs_nothing_again_and_one_ahead_nothing_twice() -> None:
    async def play() -> None:
        world = world_of(misfirePolicy="FireAll", misfireLimit=100)
        replica = Replica(world, "a")
        await replica.run()
        assert len(world.created) == 2
        replica.skew = -86_400.0
        await replica.run()
        assert len(world.created) == 2
        replica.skew = 86_400.0
        await replica.run(200)
        assert len(world.created) == 26
        replica.skew = 0.0
        world.now += 86_400.0
        await replica.run()
        assert len(world.created) == len(set(world.created)) == 26
        world.now += 3600.0
        await replica.run()
        assert len(world.created) == 27

    played(play)
