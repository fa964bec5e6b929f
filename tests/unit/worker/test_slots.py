"""The slots: how many run, and that nothing that goes wrong stops them."""

import asyncio
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from asyncjob.errors import ForbiddenError, UnknownOutcomeError
from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming import slots
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.slots import Slots, TakeoverCounts
from asyncjob_worker.errors import HeartbeatLagError
from asyncjob_worker.leases.held_job import HeldJob
from support.parts.claim_selector import ClaimSelectorHarness
from support.parts.worker_parts import held


class Line:
    """Slots over a harness; claims and runs are up to the test."""

    def __init__(
        self,
        harness: ClaimSelectorHarness,
        count: int = 1,
        *,
        claim: Callable[[Candidate], HeldJob | None] = lambda found: held(name=found.name),
    ) -> None:
        self.harness = harness
        self.claimed: list[str] = []
        self.running: list[str] = []
        self.held: list[HeldJob] = []
        self.ended: list[str] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self._claim = claim
        self.slots = Slots(
            count,
            selector=harness.selector,
            claimer=cast("Claimer", SimpleNamespace(claim=self.claim)),
            run_job=self.run_job,
            on_failure=self.fail,
        )

    def fail(self) -> None:
        self.failures += 1

    async def claim(self, found: Candidate) -> HeldJob | None:
        self.claimed.append(found.name)
        return self._claim(found)

    async def run_job(self, of: HeldJob) -> None:
        self.running.append(of.job.name)
        self.held.append(of)
        await self.gate.wait()
        self.ended.append(of.job.name)

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.mark.parametrize(("foreign", "won"), [(True, True), (True, False), (False, False)])
async def test_claims_of_jobs_that_another_worker_claims_first_are_counted(
    foreign: bool, won: bool
) -> None:
    harness = ClaimSelectorHarness()
    harness.backlog.reassign([int(foreign)] * PARTITIONS, 0.0)
    harness.put("a")
    if foreign:
        assert harness.pick() is None, "it is left to the other for a second"
        harness.now = 1.0
    line = Line(harness, claim=lambda found: held(name=found.name) if won else None)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.claimed == ["a"]
    expected = TakeoverCounts(won=int(foreign and won), lost=int(foreign and not won))
    assert line.slots.takeovers == expected
    line.gate.set()
    line.slots.drain()
    await task


async def test_as_many_jobs_run_at_a_time_as_there_are_slots() -> None:
    harness = ClaimSelectorHarness()
    harness.put("a", "b", "c")
    line = Line(harness, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.running == ["a", "b"]
    line.gate.set()
    await line.settle()
    assert sorted(line.ended) == ["a", "b", "c"]
    line.slots.drain()
    await task


async def test_the_end_of_a_job_of_a_limited_type_wakes_a_slot_for_the_next() -> None:
    harness = ClaimSelectorHarness(limits={"slow": 1})
    harness.put("s1", "s2", type="slow")
    harness.put("other")
    line = Line(harness, 3)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.running == ["s1", "other"]
    line.gate.set()
    await line.settle()
    assert sorted(line.ended) == ["other", "s1", "s2"]
    line.slots.drain()
    await task


async def test_a_lost_claim_gives_the_place_of_its_type_back() -> None:
    harness = ClaimSelectorHarness(limits={"slow": 1})
    harness.put("lost", "won", type="slow")
    line = Line(harness, 1, claim=lambda found: None if found.name == "lost" else held(name="won"))
    line.gate.set()
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.ended == ["won"]
    line.slots.drain()
    await task


async def test_a_loser_takes_the_next() -> None:
    harness = ClaimSelectorHarness()
    harness.put("a", "b")
    line = Line(harness, claim=lambda found: None if found.name == "a" else held(name="b"))
    line.gate.set()
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.ended == ["b"]
    line.slots.drain()
    await task


async def test_draining_claims_nothing_more_and_lets_the_running_end() -> None:
    harness = ClaimSelectorHarness()
    harness.put("a")
    line = Line(harness)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    line.slots.drain()
    harness.put("b")
    line.slots.wake()
    line.gate.set()
    await task
    assert line.claimed == line.ended == ["a"]


async def test_a_claim_answered_while_draining_is_run() -> None:
    harness = ClaimSelectorHarness()
    harness.put("a")

    def drain_meanwhile(found: Candidate) -> HeldJob:
        line.slots.drain()
        return held(name=found.name)

    line = Line(harness, claim=drain_meanwhile)
    line.gate.set()
    await line.slots.run()
    assert line.ended == ["a"]


@pytest.mark.parametrize("error", [UnknownOutcomeError("away"), ForbiddenError("rbac")])
async def test_a_pause_after_an_error_does_not_hold_up_a_drain(error: Exception) -> None:
    harness = ClaimSelectorHarness()
    harness.put("a")

    def refuse(found: Candidate) -> HeldJob:
        raise error

    line = Line(harness, claim=refuse)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert len(harness.backlog) == 1
    line.slots.drain()
    await asyncio.wait_for(task, 0.4)


async def test_a_slot_that_fails_drains_the_others_and_then_says_why() -> None:
    harness = ClaimSelectorHarness()
    harness.put("bad", "good")

    def stumble(found: Candidate) -> HeldJob:
        if found.name == "bad":
            raise ZeroDivisionError
        return held(name=found.name)

    line = Line(harness, 2, claim=stumble)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.failures == 1
    assert not task.done()
    line.gate.set()
    with pytest.raises(ZeroDivisionError):
        await task
    assert line.ended == ["good"]


async def test_the_end_of_one_that_crashed_before_wakes_a_slot_for_the_next() -> None:
    harness = ClaimSelectorHarness()
    harness.put("p1", "p2", crashes=1)
    line = Line(harness, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.running == ["p1"]
    line.gate.set()
    await line.settle()
    assert line.ended == ["p1", "p2"]
    line.slots.drain()
    await task


async def test_an_abandoned_handler_of_one_that_crashed_before_holds_up_no_other_such_job() -> None:
    harness = ClaimSelectorHarness()
    harness.put("p1", "p2", crashes=1)
    line = Line(harness, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    line.slots.on_abandoned(held(name="p1"))
    await line.settle()
    assert line.running == ["p1"]
    line.slots.on_abandoned(line.held[0])
    await line.settle()
    assert line.running == ["p1", "p2"]
    line.gate.set()
    line.slots.drain()
    await task


async def test_cancelled_slots_take_their_jobs_along() -> None:
    harness = ClaimSelectorHarness()
    harness.put("a")
    line = Line(harness)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert line.ended == []


async def test_of_many_idle_slots_one_alone_looks_for_one_job() -> None:
    harness = ClaimSelectorHarness()
    line = Line(harness, 8)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    harness.selections = 0
    for number in range(3):
        harness.put(f"j{number}")
        line.slots.wake()
        line.slots.wake()
        await line.settle()
        assert (harness.selections, len(line.running)) == (number + 1, number + 1)
    line.gate.set()
    line.slots.drain()
    await task


async def test_many_jobs_at_once_wake_as_many_slots() -> None:
    harness = ClaimSelectorHarness()
    line = Line(harness, 8)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    harness.selections = 0
    for number in range(6):
        harness.put(f"j{number}")
        line.slots.wake()
    await line.settle()
    assert (harness.selections, len(line.running)) == (6, 6)
    line.gate.set()
    line.slots.drain()
    await task


async def test_a_contested_job_leaves_the_next_to_the_same_slot_and_to_others() -> None:
    harness = ClaimSelectorHarness()
    line = Line(harness, 4, claim=lambda found: None if found.name < "b" else held(name=found.name))
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    harness.put("a1", "a2", "a3", "b1", "b2", "b3", "b4")
    line.slots.wake()
    await line.settle()
    assert sorted(line.running) == ["b1", "b2", "b3", "b4"]
    line.gate.set()
    line.slots.drain()
    await task


async def test_behind_a_job_whose_claim_fails_the_next_is_taken_by_another_slot() -> None:
    harness = ClaimSelectorHarness()

    def refuse(found: Candidate) -> HeldJob:
        if found.name == "short-lease":
            raise HeartbeatLagError
        return held(name=found.name)

    line = Line(harness, 2, claim=refuse)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    harness.put("short-lease", "other")
    line.slots.wake()
    await line.settle()
    assert line.running == ["other"]
    line.gate.set()
    line.slots.drain()
    await task


async def test_a_job_held_back_is_taken_in_time_by_one_slot_and_another_wakes_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = ClaimSelectorHarness()
    monkeypatch.setattr(slots, "boottime", lambda: harness.now)
    harness.backlog.takeover_delay = harness.selector._min_takeover_delay = 0.05
    harness.backlog.reassign([1] * PARTITIONS, 0)
    line = Line(harness, 4)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    harness.put("foreign", "foreign-too")
    line.slots.wake()
    await line.settle()
    assert line.running == []
    harness.now, harness.selections = 0.06, 0
    await asyncio.sleep(0.06)
    await line.settle()
    assert sorted(line.running) == ["foreign", "foreign-too"]
    assert harness.selections == 2
    line.gate.set()
    line.slots.drain()
    await task


async def test_jobs_that_a_full_backlog_left_out_are_listed_again_by_an_idle_slot() -> None:
    harness = ClaimSelectorHarness(limit=1)
    line = Line(harness, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    harness.put("kept", "left-out")
    line.slots.wake()
    await line.settle()
    assert (line.running, harness.looks) == (["kept"], 1)
    line.gate.set()
    line.slots.drain()
    await task


@pytest.mark.parametrize("seed", range(20))
async def test_no_wake_up_is_lost_whatever_the_order(seed: int) -> None:
    """Each job is put and told of once; slots free themselves at any moment in between."""
    chance, harness = random.Random(seed), ClaimSelectorHarness(limits={"slow": 2})
    line = Line(harness, 5, claim=lambda found: lost_at_times(chance, found))
    line.gate.set()
    task = asyncio.ensure_future(line.slots.run())
    for number in range(200):
        harness.put(f"j{number}", type=chance.choice(["slow", "a", "b"]))
        line.slots.wake()
        for _ in range(chance.choice([0, 0, 0, 1, 2, 7])):
            await asyncio.sleep(0)
    for _ in range(500):
        await asyncio.sleep(0)
    assert sorted(line.claimed) == sorted(f"j{number}" for number in range(200))
    line.slots.drain()
    await task


def lost_at_times(chance: random.Random, found: Candidate) -> HeldJob | None:
    return None if chance.random() < 0.3 else held(name=found.name)
