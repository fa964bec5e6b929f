"""The list of what is to be done, and who works through it."""

import asyncio

from asyncjob_operator.controllers.workqueue import (
    MAX_CONCURRENT_RECONCILES,
    ItemBackoff,
    ReconcilePool,
    WorkQueue,
)
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef
from support.vitals import loop_health, quarantine


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


class Office:
    """A dispatch and all that belongs to it."""

    def __init__(self) -> None:
        self.todo, self.actor, self.leadership = WorkQueue(), Actor(), Leadership()
        self.looked: list[str] = []
        self.dispatch = ReconcilePool(
            self.todo,
            self.actor,
            self.leadership,
            quarantine(),
            self.looked.append,
        )

    async def turn(self) -> None:
        for _ in range(5 * MAX_CONCURRENT_RECONCILES):
            await asyncio.sleep(0)


async def test_nothing_is_begun_before_leading_and_all_of_it_afterwards() -> None:
    office = Office()
    office.todo.add("a")
    running = asyncio.create_task(office.dispatch.run(loop_health()))
    await office.turn()
    assert office.actor.active == 0
    office.leadership.event.set()
    office.actor.gate.set()
    await office.turn()
    assert office.actor.acted == ["a"]
    assert office.looked == ["a"]
    running.cancel()


async def test_only_so_many_are_acted_on_at_once_and_each_only_once() -> None:
    office = Office()
    office.leadership.event.set()
    for number in range(100):
        office.todo.add(str(number))
    running = asyncio.create_task(office.dispatch.run(loop_health()))
    await office.turn()
    office.todo.add("0")
    assert office.actor.active == MAX_CONCURRENT_RECONCILES
    office.actor.gate.set()
    await office.turn()
    assert office.actor.most == MAX_CONCURRENT_RECONCILES
    assert sorted(office.actor.acted) == sorted(map(str, range(100)))
    running.cancel()


async def test_a_job_that_breaks_its_actor_stops_nobody_else() -> None:
    office = Office()
    office.leadership.event.set()
    office.actor.gate.set()
    for uid in ("bad", "good"):
        office.todo.add(uid)
    running = asyncio.create_task(office.dispatch.run(loop_health()))
    await office.turn()
    assert office.actor.acted == ["good"]
    assert office.actor.broke == ["bad"]
    running.cancel()


async def test_what_has_begun_is_finished_after_the_end() -> None:
    office = Office()
    office.leadership.event.set()
    office.todo.add("a")
    running = asyncio.create_task(office.dispatch.run(loop_health()))
    await office.turn()
    running.cancel()
    office.actor.gate.set()
    await office.dispatch.drain(1)
    assert office.actor.acted == ["a"]


async def test_what_does_not_finish_is_cut_off() -> None:
    office = Office()
    office.leadership.event.set()
    office.todo.add("a")
    running = asyncio.create_task(office.dispatch.run(loop_health()))
    await office.turn()
    running.cancel()
    await office.dispatch.drain(0.01)
    await office.turn()
    assert office.actor.acted == []
    assert office.looked == ["a"]


def test_pauses_double_up_to_their_cap_and_start_anew_after_a_success() -> None:
    patience = ItemBackoff(1.0, 60.0)
    for expected in (1, 2, 4, 8, 16, 32, 60, 60):
        assert expected / 2 <= patience.record_failure("a") <= expected
    patience.reset("a")
    assert patience.record_failure("a") <= 1
