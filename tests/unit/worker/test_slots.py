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


class Bench:
    """A choice to pick from, with a queue, a roster and a clock to play with."""

    def __init__(self, limit: int = 100, limits: Mapping[str, int] | None = None) -> None:
        self.now = 0.0
        self.looks = 0
        self.selections = 0
        self.backlog = Backlog(takeover_delay=1.0, limit=limit, limited_types=limits or ())
        self.queue = QueueState(lambda: None, self.look_again)
        self.queue.replace([])
        self.roster = SimpleNamespace(synced=True)
        self.choice = ClaimSelector(
            backlog=self.backlog,
            queue=self.queue,
            live_workers=cast("LiveWorkers", self.roster),
            clock=lambda: self.now,
            relist=self.look_again,
            limits=limits or {},
        )
        self._select, self.choice.select = self.choice.select, self.select  # type: ignore[method-assign]

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
        picked = self.choice.select()
        return picked.name if picked else None


def test_a_queue_that_lets_priorities_age_is_heeded() -> None:
    bench = Bench()
    bench.queue.replace([{"spec": {"priorityAgeingSeconds": 10}}])
    assert bench.pick() is None
    bench.put("old")
    bench.now = 40.0
    bench.put("urgent", priority=3)
    assert [bench.pick(), bench.pick()] == ["old", "urgent"]


def test_nothing_is_picked_before_queue_and_roster_are_known() -> None:
    bench = Bench()
    bench.put("a")
    bench.roster.synced = False
    assert bench.pick() is None
    bench.roster.synced, bench.queue.synced = True, False
    assert bench.pick() is None
    bench.queue.synced = True
    assert bench.pick() == "a"


def test_a_paused_queue_is_not_looked_at_again_and_again() -> None:
    bench = Bench()
    bench.backlog.reassign([1] * PARTITIONS, 0)
    bench.put("a")
    bench.queue.replace([PAUSED])
    bench.now = 5.0
    assert bench.pick() is None
    assert bench.choice.ready_at() is None


def test_in_a_limited_queue_only_admitted_jobs_are_picked() -> None:
    bench = Bench()
    bench.queue.replace([LIMITED])
    bench.put("a")
    bench.put("b", admitted=True)
    assert (bench.pick(), bench.pick()) == ("b", None)


def test_a_lifted_limit_brings_back_the_jobs_passed_over() -> None:
    bench = Bench()
    bench.queue.replace([LIMITED])
    bench.put("a")
    assert bench.pick() is None
    bench.queue.replace([])
    assert bench.looks == 1


def test_an_overflowed_backlog_is_filled_again_once_it_is_empty() -> None:
    bench = Bench(limit=1)
    bench.put("a", "b")
    assert (bench.pick(), bench.looks) == ("a", 0)
    assert (bench.pick(), bench.looks) == (None, 1)
    assert (bench.pick(), bench.looks) == (None, 1)


def test_a_job_that_crashed_before_begins_alone_and_then_others_have_their_turn() -> None:
    bench = Bench()
    bench.put("p1", "p2", crashes=1)
    bench.put("sound", "safe")
    first = bench.choice.select()
    assert first
    assert (first.name, bench.pick()) == ("p1", None)
    assert bench.choice.ready_at() == ALONE_SECONDS
    bench.now = 5.0
    assert bench.choice.done(first)
    assert [bench.pick(), bench.pick(), bench.pick()] == ["sound", "safe", None]


def test_a_worker_becomes_empty_for_one_that_crashed_before() -> None:
    bench = Bench()
    bench.put("sound")
    beside = bench.choice.select()
    assert beside
    bench.put("p1", crashes=1)
    bench.put("later")
    bench.choice._crashed_allowed_at = 3.0
    later = bench.choice.select()
    assert later is not None
    assert later.name == "later"
    bench.now = 3.0
    bench.put("last")
    assert (bench.pick(), bench.choice.ready_at()) == (None, 3.0 + EMPTYING_SECONDS)
    bench.choice.done(beside)
    assert bench.pick() is None
    bench.choice.on_abandoned(later)
    assert (bench.pick(), bench.pick()) == ("p1", None)


def test_of_two_claims_of_one_job_the_end_of_the_older_leaves_the_newer_alone() -> None:
    bench = Bench()
    bench.put("p1", crashes=1)
    older = bench.choice.select()
    assert older is not None
    bench.choice.on_abandoned(older)
    bench.now = bench.choice._crashed_allowed_at
    bench.put("p1", "p2", crashes=1)
    newer = bench.choice.select()
    assert newer is not None
    assert newer.name == older.name
    bench.choice.on_abandoned(older)
    assert bench.pick() is None
    bench.choice.done(older)
    assert bench.pick() is None


def test_no_job_waits_for_ever_for_another_that_waits_for_it() -> None:
    """A parent and the child that it waits for, either of which has crashed before."""
    bench = Bench()
    bench.put("parent")
    assert bench.pick() == "parent"
    bench.put("child", crashes=1)
    assert bench.pick() is None
    opens_at = bench.choice.ready_at()
    assert opens_at == EMPTYING_SECONDS
    bench.now = opens_at
    assert bench.pick() == "child"

    bench = Bench()
    bench.put("parent", crashes=1)
    assert bench.pick() == "parent"
    bench.put("child")
    assert bench.pick() is None
    bench.now = ALONE_SECONDS
    assert bench.pick() == "child"


def test_what_opens_between_a_look_and_the_wait_is_looked_at_again() -> None:
    bench = Bench()
    bench.put("sound")
    assert bench.pick() == "sound"
    bench.put("p1", crashes=1)
    assert bench.pick() is None
    bench.now = EMPTYING_SECONDS - 1e-6
    assert bench.pick() is None
    bench.now = EMPTYING_SECONDS
    assert bench.choice.ready_at() == EMPTYING_SECONDS
    assert bench.pick() == "p1"


def fill_again(bench: Bench) -> None:
    bench.backlog.clear()
    bench.put("p1", crashes=1)


def deal_again(bench: Bench) -> None:
    bench.backlog.reassign([0] * PARTITIONS, bench.now)


@pytest.mark.parametrize("change", [fill_again, deal_again])
def test_one_that_crashed_before_is_not_forgotten_when_the_backlog_is_made_anew(
    change: Callable[[Bench], None],
) -> None:
    bench = Bench()
    bench.put("sound")
    assert bench.pick() == "sound"
    bench.put("p1", crashes=1)
    assert bench.pick() is None
    bench.now = 3.0
    change(bench)
    assert bench.pick() is None
    assert bench.choice.ready_at() == EMPTYING_SECONDS
    bench.now = EMPTYING_SECONDS
    assert bench.pick() == "p1"


def test_of_a_limited_type_so_many_are_at_work_at_a_time() -> None:
    bench = Bench(limits={"slow": 2})
    bench.put("a", "b", "c", type="slow")
    bench.put("other")
    first = bench.choice.select()
    assert first
    assert (first.name, bench.pick(), bench.pick(), bench.pick()) == ("a", "b", "other", None)
    assert not bench.choice.done(candidate("other"))
    assert bench.choice.done(first)
    assert (bench.pick(), bench.pick()) == ("c", None)


def test_of_a_barred_type_nothing_is_awaited() -> None:
    bench = Bench(limits={"slow": 1})
    bench.backlog.reassign([1] * PARTITIONS, 0)
    bench.put("a", "b", type="slow")
    bench.now = 1.0
    assert bench.pick() is None
    bench.now = 2.0
    picked = bench.choice.select()
    assert picked
    assert bench.choice.ready_at() is None
    assert bench.choice.done(picked)
    assert bench.choice.ready_at() is not None


def test_slow_claims_make_for_more_patience_within_bounds() -> None:
    bench = Bench()
    least = bench.backlog.takeover_delay
    bench.choice.record_claim(0.001, won=True)
    assert bench.backlog.takeover_delay == least
    for _ in range(50):
        bench.choice.record_claim(0.15, won=True)
    assert 1.4 < bench.backlog.takeover_delay < 1.6
    bench.choice.record_claim(60.0, won=False)
    assert bench.backlog.takeover_delay == 2.0
    for _ in range(100):
        bench.choice.record_claim(0.001, won=True)
    assert bench.backlog.takeover_delay == least


class Line:
    """Slots over a bench; claims and runs are up to the test."""

    def __init__(
        self,
        bench: Bench,
        count: int = 1,
        *,
        claim: Callable[[Candidate], HeldJob | None] = lambda found: held(name=found.name),
    ) -> None:
        self.bench = bench
        self.claimed: list[str] = []
        self.running: list[str] = []
        self.held: list[HeldJob] = []
        self.ended: list[str] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self._claim = claim
        self.slots = Slots(
            count,
            selector=bench.choice,
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
    bench = Bench()
    bench.put("a", "b", "c")
    line = Line(bench, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.running == ["a", "b"]
    line.gate.set()
    await line.settle()
    assert sorted(line.ended) == ["a", "b", "c"]
    line.slots.drain()
    await task


async def test_the_end_of_a_job_of_a_limited_type_wakes_a_slot_for_the_next() -> None:
    bench = Bench(limits={"slow": 1})
    bench.put("s1", "s2", type="slow")
    bench.put("other")
    line = Line(bench, 3)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.running == ["s1", "other"]
    line.gate.set()
    await line.settle()
    assert sorted(line.ended) == ["other", "s1", "s2"]
    line.slots.drain()
    await task


async def test_a_lost_claim_gives_the_place_of_its_type_back() -> None:
    bench = Bench(limits={"slow": 1})
    bench.put("lost", "won", type="slow")
    line = Line(bench, 1, claim=lambda found: None if found.name == "lost" else held(name="won"))
    line.gate.set()
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.ended == ["won"]
    line.slots.drain()
    await task


async def test_a_loser_takes_the_next() -> None:
    bench = Bench()
    bench.put("a", "b")
    line = Line(bench, claim=lambda found: None if found.name == "a" else held(name="b"))
    line.gate.set()
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.ended == ["b"]
    line.slots.drain()
    await task


async def test_draining_claims_nothing_more_and_lets_the_running_end() -> None:
    bench = Bench()
    bench.put("a")
    line = Line(bench)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    line.slots.drain()
    bench.put("b")
    line.slots.wake()
    line.gate.set()
    await task
    assert line.claimed == line.ended == ["a"]


async def test_a_claim_answered_while_draining_is_run() -> None:
    bench = Bench()
    bench.put("a")

    def drain_meanwhile(found: Candidate) -> HeldJob:
        line.slots.drain()
        return held(name=found.name)

    line = Line(bench, claim=drain_meanwhile)
    line.gate.set()
    await line.slots.run()
    assert line.ended == ["a"]


@pytest.mark.parametrize("error", [UnknownOutcomeError("away"), ForbiddenError("rbac")])
async def test_a_pause_after_an_error_does_not_hold_up_a_drain(error: Exception) -> None:
    bench = Bench()
    bench.put("a")

    def refuse(found: Candidate) -> HeldJob:
        raise error

    line = Line(bench, claim=refuse)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert len(bench.backlog) == 1
    line.slots.drain()
    await asyncio.wait_for(task, 0.4)


async def test_a_slot_that_fails_drains_the_others_and_then_says_why() -> None:
    bench = Bench()
    bench.put("bad", "good")

    def stumble(found: Candidate) -> HeldJob:
        if found.name == "bad":
            raise ZeroDivisionError
        return held(name=found.name)

    line = Line(bench, 2, claim=stumble)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.failures == 1
    assert not task.done()
    line.gate.set()
    with pytest.raises(ZeroDivisionError):
        await task
    assert line.ended == ["good"]


async def test_the_end_of_one_that_crashed_before_wakes_a_slot_for_the_next() -> None:
    bench = Bench()
    bench.put("p1", "p2", crashes=1)
    line = Line(bench, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    assert line.running == ["p1"]
    line.gate.set()
    await line.settle()
    assert line.ended == ["p1", "p2"]
    line.slots.drain()
    await task


async def test_an_abandoned_handler_of_one_that_crashed_before_holds_up_no_other_such_job() -> None:
    bench = Bench()
    bench.put("p1", "p2", crashes=1)
    line = Line(bench, 2)
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
    bench = Bench()
    bench.put("a")
    line = Line(bench)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert line.ended == []


async def test_of_many_idle_slots_one_alone_looks_for_one_job() -> None:
    bench = Bench()
    line = Line(bench, 8)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    bench.selections = 0
    for number in range(3):
        bench.put(f"j{number}")
        line.slots.wake()
        line.slots.wake()
        await line.settle()
        assert (bench.selections, len(line.running)) == (number + 1, number + 1)
    line.gate.set()
    line.slots.drain()
    await task


async def test_many_jobs_at_once_wake_as_many_slots() -> None:
    bench = Bench()
    line = Line(bench, 8)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    bench.selections = 0
    for number in range(6):
        bench.put(f"j{number}")
        line.slots.wake()
    await line.settle()
    assert (bench.selections, len(line.running)) == (6, 6)
    line.gate.set()
    line.slots.drain()
    await task


async def test_a_contested_job_leaves_the_next_to_the_same_slot_and_to_others() -> None:
    bench = Bench()
    line = Line(bench, 4, claim=lambda found: None if found.name < "b" else held(name=found.name))
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    bench.put("a1", "a2", "a3", "b1", "b2", "b3", "b4")
    line.slots.wake()
    await line.settle()
    assert sorted(line.running) == ["b1", "b2", "b3", "b4"]
    line.gate.set()
    line.slots.drain()
    await task


async def test_behind_a_job_whose_claim_fails_the_next_is_taken_by_another_slot() -> None:
    bench = Bench()

    def refuse(found: Candidate) -> HeldJob:
        if found.name == "short-lease":
            raise HeartbeatLagError
        return held(name=found.name)

    line = Line(bench, 2, claim=refuse)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    bench.put("short-lease", "other")
    line.slots.wake()
    await line.settle()
    assert line.running == ["other"]
    line.gate.set()
    line.slots.drain()
    await task


async def test_a_job_held_back_is_taken_in_time_by_one_slot_and_another_wakes_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    monkeypatch.setattr(slots, "boottime", lambda: bench.now)
    bench.backlog.takeover_delay = bench.choice._min_takeover_delay = 0.05
    bench.backlog.reassign([1] * PARTITIONS, 0)
    line = Line(bench, 4)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    bench.put("foreign", "foreign-too")
    line.slots.wake()
    await line.settle()
    assert line.running == []
    bench.now, bench.selections = 0.06, 0
    await asyncio.sleep(0.06)
    await line.settle()
    assert sorted(line.running) == ["foreign", "foreign-too"]
    assert bench.selections == 2
    line.gate.set()
    line.slots.drain()
    await task


async def test_jobs_that_a_full_backlog_left_out_are_listed_again_by_an_idle_slot() -> None:
    bench = Bench(limit=1)
    line = Line(bench, 2)
    task = asyncio.ensure_future(line.slots.run())
    await line.settle()
    bench.put("kept", "left-out")
    line.slots.wake()
    await line.settle()
    assert (line.running, bench.looks) == (["kept"], 1)
    line.gate.set()
    line.slots.drain()
    await task


@pytest.mark.parametrize("seed", range(20))
async def test_no_wake_up_is_lost_whatever_the_order(seed: int) -> None:
    """Each job is put and told of once; slots free themselves at any moment in between."""
    chance, bench = random.Random(seed), Bench(limits={"slow": 2})
    line = Line(bench, 5, claim=lambda found: lost_at_times(chance, found))
    line.gate.set()
    task = asyncio.ensure_future(line.slots.run())
    for number in range(200):
        bench.put(f"j{number}", type=chance.choice(["slow", "a", "b"]))
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
