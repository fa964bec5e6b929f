"""The slots: what they pick, and that nothing that goes wrong stops them."""

import asyncio
import random
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asyncjob.errors import ForbiddenError, UnknownOutcomeError
from asyncjob.lifecycle.claim import Candidate
from asyncjob_worker.claiming import slots
from asyncjob_worker.claiming.backlog import PARTITIONS, Backlog
from asyncjob_worker.claiming.claimer import Claimer
from asyncjob_worker.claiming.queue_state import LiveWorkers, QueueState
from asyncjob_worker.claiming.selector import ALONE_SECONDS, EMPTYING_SECONDS, ClaimSelector
from asyncjob_worker.claiming.slots import Slots
from asyncjob_worker.errors import HeartbeatLagError
from asyncjob_worker.leases.held_job import HeldJob
from support.worker_parts import candidate, held

LIMITED = {"spec": {"maxConcurrency": 1}}
PAUSED = {"spec": {"paused": True}}


class ClaimSelectorHarness:
    """A selector to pick from, with a queue, a live_workers and a clock to play with."""

    def __init__(self, limit: int = 100, limits: Mapping[str, int] | None = None) -> None:
        self.now = 0.0
        self.looks = 0
        self.selections = 0
        self.backlog = Backlog(takeover_delay=1.0, limit=limit, limited_types=limits or ())
        self.queue = QueueState(lambda: None, self.look_again)
        self.queue.replace([])
        self.live_workers = SimpleNamespace(synced=True)
        self.selector = ClaimSelector(
            backlog=self.backlog,
            queue=self.queue,
            live_workers=cast("LiveWorkers", self.live_workers),
            clock=lambda: self.now,
            relist=self.look_again,
            limits=limits or {},
        )
        self._select, self.selector.select = self.selector.select, self.select  # type: ignore[method-assign]

    def select(self) -> Candidate | None:
        self.selections += 1
        return self._select()

    def look_again(self) -> None:
        self.looks += 1
        self.backlog.clear()

    def put(self, *names: str, **changes: Any) -> None:
        for name in names:
            self.backlog.put(candidate(name, **changes), self.now)

    def pick(self) -> str | None:
        picked = self.selector.select()
        return picked.name if picked else None


def test_a_queue_that_lets_priorities_age_is_heeded() -> None:
    harness = ClaimSelectorHarness()
    harness.queue.replace([{"spec": {"priorityAgeingSeconds": 10}}])
    assert harness.pick() is None
    harness.put("old")
    harness.now = 40.0
    harness.put("urgent", priority=3)
    assert [harness.pick(), harness.pick()] == ["old", "urgent"]


def test_nothing_is_picked_before_queue_and_live_workers_are_known() -> None:
    harness = ClaimSelectorHarness()
    harness.put("a")
    harness.live_workers.synced = False
    assert harness.pick() is None
    harness.live_workers.synced, harness.queue.synced = True, False
    assert harness.pick() is None
    harness.queue.synced = True
    assert harness.pick() == "a"


def test_a_paused_queue_is_not_looked_at_again_and_again() -> None:
    harness = ClaimSelectorHarness()
    harness.backlog.reassign([1] * PARTITIONS, 0)
    harness.put("a")
    harness.queue.replace([PAUSED])
    harness.now = 5.0
    assert harness.pick() is None
    assert harness.selector.ready_at() is None


def test_in_a_limited_queue_only_admitted_jobs_are_picked() -> None:
    harness = ClaimSelectorHarness()
    harness.queue.replace([LIMITED])
    harness.put("a")
    harness.put("b", admitted=True)
    assert (harness.pick(), harness.pick()) == ("b", None)


def test_a_lifted_limit_brings_back_the_jobs_passed_over() -> None:
    harness = ClaimSelectorHarness()
    harness.queue.replace([LIMITED])
    harness.put("a")
    assert harness.pick() is None
    harness.queue.replace([])
    assert harness.looks == 1


def test_an_overflowed_backlog_is_filled_again_once_it_is_empty() -> None:
    harness = ClaimSelectorHarness(limit=1)
    harness.put("a", "b")
    assert (harness.pick(), harness.looks) == ("a", 0)
    assert (harness.pick(), harness.looks) == (None, 1)
    assert (harness.pick(), harness.looks) == (None, 1)


def test_a_job_that_crashed_before_begins_alone_and_then_others_have_their_turn() -> None:
    harness = ClaimSelectorHarness()
    harness.put("p1", "p2", crashes=1)
    harness.put("sound", "safe")
    first = harness.selector.select()
    assert first
    assert (first.name, harness.pick()) == ("p1", None)
    assert harness.selector.ready_at() == ALONE_SECONDS
    harness.now = 5.0
    assert harness.selector.done(first)
    assert [harness.pick(), harness.pick(), harness.pick()] == ["sound", "safe", None]


def test_a_worker_becomes_empty_for_one_that_crashed_before() -> None:
    harness = ClaimSelectorHarness()
    harness.put("sound")
    beside = harness.selector.select()
    assert beside
    harness.put("p1", crashes=1)
    harness.put("later")
    harness.selector._crashed_allowed_at = 3.0
    later = harness.selector.select()
    assert later is not None
    assert later.name == "later"
    harness.now = 3.0
    harness.put("last")
    assert (harness.pick(), harness.selector.ready_at()) == (None, 3.0 + EMPTYING_SECONDS)
    harness.selector.done(beside)
    assert harness.pick() is None
    harness.selector.on_abandoned(later)
    assert (harness.pick(), harness.pick()) == ("p1", None)


def test_of_two_claims_of_one_job_the_end_of_the_older_leaves_the_newer_alone() -> None:
    harness = ClaimSelectorHarness()
    harness.put("p1", crashes=1)
    older = harness.selector.select()
    assert older is not None
    harness.selector.on_abandoned(older)
    harness.now = harness.selector._crashed_allowed_at
    harness.put("p1", "p2", crashes=1)
    newer = harness.selector.select()
    assert newer is not None
    assert newer.name == older.name
    harness.selector.on_abandoned(older)
    assert harness.pick() is None
    harness.selector.done(older)
    assert harness.pick() is None


def test_no_job_waits_for_ever_for_another_that_waits_for_it() -> None:
    """A parent and the child that it waits for, either of which has crashed before."""
    harness = ClaimSelectorHarness()
    harness.put("parent")
    assert harness.pick() == "parent"
    harness.put("child", crashes=1)
    assert harness.pick() is None
    opens_at = harness.selector.ready_at()
    assert opens_at == EMPTYING_SECONDS
    harness.now = opens_at
    assert harness.pick() == "child"

    harness = ClaimSelectorHarness()
    harness.put("parent", crashes=1)
    assert harness.pick() == "parent"
    harness.put("child")
    assert harness.pick() is None
    harness.now = ALONE_SECONDS
    assert harness.pick() == "child"


def test_what_opens_between_a_look_and_the_wait_is_looked_at_again() -> None:
    harness = ClaimSelectorHarness()
    harness.put("sound")
    assert harness.pick() == "sound"
    harness.put("p1", crashes=1)
    assert harness.pick() is None
    harness.now = EMPTYING_SECONDS - 1e-6
    assert harness.pick() is None
    harness.now = EMPTYING_SECONDS
    assert harness.selector.ready_at() == EMPTYING_SECONDS
    assert harness.pick() == "p1"


def fill_again(harness: ClaimSelectorHarness) -> None:
    harness.backlog.clear()
    harness.put("p1", crashes=1)


def deal_again(harness: ClaimSelectorHarness) -> None:
    harness.backlog.reassign([0] * PARTITIONS, harness.now)


@pytest.mark.parametrize("change", [fill_again, deal_again])
def test_one_that_crashed_before_is_not_forgotten_when_the_backlog_is_made_again(
    change: Callable[[ClaimSelectorHarness], None],
) -> None:
    harness = ClaimSelectorHarness()
    harness.put("sound")
    assert harness.pick() == "sound"
    harness.put("p1", crashes=1)
    assert harness.pick() is None
    harness.now = 3.0
    change(harness)
    assert harness.pick() is None
    assert harness.selector.ready_at() == EMPTYING_SECONDS
    harness.now = EMPTYING_SECONDS
    assert harness.pick() == "p1"


def test_of_a_limited_type_so_many_are_at_work_at_a_time() -> None:
    harness = ClaimSelectorHarness(limits={"slow": 2})
    harness.put("a", "b", "c", type="slow")
    harness.put("other")
    first = harness.selector.select()
    assert first
    assert (first.name, harness.pick(), harness.pick(), harness.pick()) == ("a", "b", "other", None)
    assert not harness.selector.done(candidate("other"))
    assert harness.selector.done(first)
    assert (harness.pick(), harness.pick()) == ("c", None)


def test_of_a_barred_type_nothing_is_awaited() -> None:
    harness = ClaimSelectorHarness(limits={"slow": 1})
    harness.backlog.reassign([1] * PARTITIONS, 0)
    harness.put("a", "b", type="slow")
    harness.now = 1.0
    assert harness.pick() is None
    harness.now = 2.0
    picked = harness.selector.select()
    assert picked
    assert harness.selector.ready_at() is None
    assert harness.selector.done(picked)
    assert harness.selector.ready_at() is not None


def test_slow_claims_make_for_more_patience_within_bounds() -> None:
    harness = ClaimSelectorHarness()
    least = harness.backlog.takeover_delay
    harness.selector.record_claim(0.001, won=True)
    assert harness.backlog.takeover_delay == least
    for _ in range(50):
        harness.selector.record_claim(0.15, won=True)
    assert 1.4 < harness.backlog.takeover_delay < 1.6
    harness.selector.record_claim(60.0, won=False)
    assert harness.backlog.takeover_delay == 2.0
    for _ in range(100):
        harness.selector.record_claim(0.001, won=True)
    assert harness.backlog.takeover_delay == least


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
