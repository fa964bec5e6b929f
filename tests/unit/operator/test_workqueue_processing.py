"""The list of what is to be done, and who works through it."""

import asyncio

from asyncjob_operator.controllers.workqueue import (
    MAX_CONCURRENT_RECONCILES,
    ItemBackoff,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef
from support.parts.vitals import loop_health, quarantine


class Actor:
    """Waits at a gate with each job; stumbles over one."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.active = self.most = 0
        self.acted: list[str] = []
        self.broke: list[str] = []

    async def reconcile(self, uid: str) -> None:
        self.active += 1
        self.most = max(self.most, self.active)
        await self.gate.wait()
        self.active -= 1
        if uid == "bad":
            raise ValueError(uid)
        self.acted.append(uid)

    def object_ref(self, uid: str) -> ObjectRef:
        return ObjectRef(ObjectKind.JOB, "ns", uid, "1")

    def requeue_after(self, uid: str, _seconds: float) -> None:
        self.broke.append(uid)


class Leadership:
    """Given and taken by the test."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def leads(self) -> bool:
        return self.event.is_set()

    async def wait_until_elected(self) -> None:
        await self.event.wait()


class PoolHarness:
    """A pool of reconciles, and all that belongs to it."""

    def __init__(self) -> None:
        self.queue, self.actor, self.leadership = WorkQueue(), Actor(), Leadership()
        self.looked: list[str] = []
        self.dispatch = ReconcilePool(
            self.queue,
            self.actor,
            self.leadership,
            quarantine(),
            self.looked.append,
        )

    async def turn(self) -> None:
        for _ in range(5 * MAX_CONCURRENT_RECONCILES):
            await asyncio.sleep(0)


async def test_nothing_is_begun_before_leading_and_all_of_it_afterwards() -> None:
    harness = PoolHarness()
    harness.queue.add("a")
    running = asyncio.create_task(harness.dispatch.run(loop_health()))
    await harness.turn()
    assert harness.actor.active == 0
    harness.leadership.event.set()
    harness.actor.gate.set()
    await harness.turn()
    assert harness.actor.acted == ["a"]
    assert harness.looked == ["a"]
    running.cancel()


async def test_only_so_many_are_acted_on_at_once_and_each_only_once() -> None:
    harness = PoolHarness()
    harness.leadership.event.set()
    for number in range(100):
        harness.queue.add(str(number))
    running = asyncio.create_task(harness.dispatch.run(loop_health()))
    await harness.turn()
    harness.queue.add("0")
    assert harness.actor.active == MAX_CONCURRENT_RECONCILES
    harness.actor.gate.set()
    await harness.turn()
    assert harness.actor.most == MAX_CONCURRENT_RECONCILES
    assert sorted(harness.actor.acted) == sorted(map(str, range(100)))
    running.cancel()


async def test_a_job_that_breaks_its_actor_stops_nobody_else() -> None:
    harness = PoolHarness()
    harness.leadership.event.set()
    harness.actor.gate.set()
    for uid in ("bad", "good"):
        harness.queue.add(uid)
    running = asyncio.create_task(harness.dispatch.run(loop_health()))
    await harness.turn()
    assert harness.actor.acted == ["good"]
    assert harness.actor.broke == ["bad"]
    running.cancel()


async def test_what_has_begun_is_finished_after_the_end() -> None:
    harness = PoolHarness()
    harness.leadership.event.set()
    harness.queue.add("a")
    running = asyncio.create_task(harness.dispatch.run(loop_health()))
    await harness.turn()
    running.cancel()
    harness.actor.gate.set()
    await harness.dispatch.drain(1)
    assert harness.actor.acted == ["a"]


async def test_what_does_not_finish_is_cut_off() -> None:
    harness = PoolHarness()
    harness.leadership.event.set()
    harness.queue.add("a")
    running = asyncio.create_task(harness.dispatch.run(loop_health()))
    await harness.turn()
    running.cancel()
    await harness.dispatch.drain(0.01)
    await harness.turn()
    assert harness.actor.acted == []
    assert harness.looked == ["a"]


def test_pauses_double_up_to_their_cap_and_start_again_after_a_success() -> None:
    backoff = ItemBackoff(1.0, 60.0)
    for expected in (1, 2, 4, 8, 16, 32, 60, 60):
        assert expected / 2 <= backoff.record_failure("a") <= expected
    backoff.reset("a")
    assert backoff.record_failure("a") <= 1
