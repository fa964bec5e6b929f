"""Which job a free slot claims next, and when it looks again."""

from collections.abc import Callable

import pytest

from asyncjob_worker.claiming.partitions import PARTITIONS
from asyncjob_worker.claiming.selection import Source
from asyncjob_worker.claiming.selector import (
    ALONE_SECONDS,
    EMPTYING_SECONDS,
    UNKNOWN_DELAY_SECONDS,
)
from support.parts.claim_selector import ClaimSelectorHarness
from support.parts.worker_parts import candidate

LIMITED = {"spec": {"maxConcurrency": 1}}
PAUSED = {"spec": {"paused": True}}


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


def test_an_excluded_type_is_never_waited_for() -> None:
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


def test_as_long_as_no_claim_was_answered_the_owners_of_many_workers_have_more_time() -> None:
    harness = ClaimSelectorHarness()
    least = harness.backlog.takeover_delay
    harness.selector.select()
    assert harness.backlog.takeover_delay == least, "few workers see all jobs"
    harness.backlog.reassign_sources({Source.OWN: [0] * PARTITIONS}, 0)
    harness.selector.select()
    assert harness.backlog.takeover_delay == UNKNOWN_DELAY_SECONDS
    harness.selector.record_claim(0.01, won=True)
    harness.selector.select()
    assert harness.backlog.takeover_delay == least


def test_slow_claims_lengthen_the_takeover_delay_up_to_its_limit() -> None:
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


def test_chunks_of_all_types_together_leave_slots_for_other_jobs() -> None:
    harness = ClaimSelectorHarness(chunk_types=frozenset({"a/items", "b/items"}), slots=3)
    harness.put("a-1", "a-2", type="a/items")
    harness.put("b-1", type="b/items")
    harness.put("single", type="other")
    chosen = [harness.selector.select() for _ in range(4)]
    names = [one.name for one in chosen if one]
    assert names == ["a-1", "b-1", "single"]
    assert chosen[0] is not None
    assert harness.selector.done(chosen[0])
    assert harness.pick() == "a-2"


@pytest.mark.parametrize(
    ("slots", "picked"),
    [(1, ["a-1", "x", "a-2", "y", "a-3", "a-4"]), (2, ["a-1", "a-2", "a-3", "a-4", "x", "y"])],
)
def test_where_chunks_leave_no_slot_to_other_jobs_one_that_waits_comes_after_each_chunk(
    slots: int, picked: list[str]
) -> None:
    harness = ClaimSelectorHarness(chunk_types=frozenset({"a/items"}), slots=slots)
    harness.put("a-1", "a-2", "a-3", "a-4", type="a/items")
    harness.put("x", "y", type="other")
    found = []
    for _ in picked:
        one = harness.selector.select()
        assert one is not None
        harness.selector.done(one)
        found.append(one.name)
    assert found == picked


def test_jobs_that_were_there_before_an_array_are_not_held_up_by_it_on_the_only_slot() -> None:
    harness = ClaimSelectorHarness(chunk_types=frozenset({"a/items"}), slots=1)
    harness.put("x", "y", type="other")
    harness.put("a-1", "a-2", type="a/items")
    harness.put("z", type="other")
    found = []
    while (one := harness.selector.select()) is not None:
        harness.selector.done(one)
        found.append(one.name)
    assert found == ["x", "y", "a-1", "z", "a-2"]
