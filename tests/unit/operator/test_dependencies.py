"""Jobs that depend on others: when they start, when they are given up, and what they say."""

from itertools import permutations
from typing import Any

import pytest

from asyncjob_operator.core.options import Options
from asyncjob_operator.core.retention import Finished
from asyncjob_operator.observe.observer import AT_ONCE
from support.snapshots import raw
from support.world import World

ANY = {"outcome": "Any"}
GIVEN_UP = "DeadLetter DependencyFailed cannot start: "


@pytest.fixture
def world() -> World:
    return World()


async def test_a_job_waits_for_all_it_depends_on_and_says_for_which(world: World) -> None:
    for name in "abcde":
        world.create(name)
    world.create("last", *"abcde")
    await world.settle()
    assert world.state("last") == "Pending WaitingForDependency waiting for a, b, c and 2 more"
    for name in "abc":
        world.end(name)
    await world.settle()
    assert world.state("last") == "Pending WaitingForDependency waiting for d and e"
    world.end("d")
    world.end("e")
    await world.settle()
    assert world.state("last") == "Queued GateOpened"
    assert "last" in world.claimable()


async def test_a_job_whose_dependencies_are_met_already_is_admitted_where_it_stands(
    world: World,
) -> None:
    world.create("a")
    world.end("a")
    world.create("b", "a")
    await world.settle()
    assert world.claimable() == ["b"]
    assert "reason" not in world.status("b")


async def test_jobs_may_be_created_in_any_order(world: World) -> None:
    world.create("c", "b")
    world.create("b", "a")
    await world.settle()
    assert world.state("b").endswith("waiting for a (does not exist)")
    world.create("a")
    await world.settle()
    assert world.state("b").endswith("waiting for a")
    for name in "abc":
        assert world.claimable() == [name]
        world.end(name)
        await world.settle()


async def test_very_many_that_wait_for_one_job_are_let_through_bit_by_bit(world: World) -> None:
    world.create("p")
    names = [f"j{number:03}" for number in range(AT_ONCE + 1)]
    for name in names:
        world.create(name, "p")
    await world.settle()
    world.end("p")
    await world.settle()
    assert world.claimable() == []
    await world.pass_time(0)
    assert world.claimable() == names


@pytest.mark.parametrize("phase", ["DeadLetter", "Cancelled"])
async def test_a_dependency_that_does_not_succeed_makes_a_dead_letter(
    world: World, phase: str
) -> None:
    world.create("a")
    world.create("b", "a")
    world.create("c", "b")
    world.create("after", {"name": "a", **ANY}, {"name": "c", **ANY})
    await world.settle()
    world.end("a", phase, "Why")
    await world.settle()
    how = "is a dead letter" if phase == "DeadLetter" else "was cancelled"
    assert world.state("b") == f"{GIVEN_UP}a {how} (Why)"
    assert world.state("c") == f"{GIVEN_UP}b is a dead letter (DependencyFailed)"
    assert world.claimable() == ["after"]


async def test_whoever_redrives_the_dependency_redrives_the_dependent_and_it_waits_again(
    world: World,
) -> None:
    world.create("a")
    world.create("b", "a")
    await world.settle()
    world.end("a", "DeadLetter", "NotRetryable")
    await world.settle()
    world.wish("b", redrive=1)
    await world.settle()
    assert world.state("b").startswith(GIVEN_UP)
    world.wish("a", redrive=1)
    world.wish("b", redrive=2)
    await world.settle()
    assert world.state("b").endswith("waiting for a")
    world.end("a")
    await world.settle()
    assert world.claimable() == ["b"]


async def test_a_failure_is_confirmed_by_a_live_read(world: World) -> None:
    world.create("a")
    world.end("a", "DeadLetter", "NotRetryable")
    world.blind = True
    world.wish("a", redrive=1)
    world.store("a", {**world.get("a"), "status": {"phase": "Queued"}})
    world.blind = False
    world.create("b", "a")
    await world.settle()
    await world.pass_time(61)
    assert world.state("b").endswith("waiting for a")


async def test_a_job_that_does_not_exist_is_waited_for_and_then_no_longer() -> None:
    world = World(Options(missing_dependency_timeout=100))
    world.create("b", "a")
    await world.settle()
    await world.pass_time(99)
    assert world.status("b")["phase"] == "Pending"
    await world.pass_time(1)
    assert (
        world.state("b") == f"{GIVEN_UP}a does not exist; waited 100 s for jobs that do not exist"
    )


async def test_waiting_for_a_missing_job_begins_anew_when_it_was_there_meanwhile() -> None:
    world = World(Options(missing_dependency_timeout=100))
    world.create("b", "a")
    await world.settle()
    await world.pass_time(99)
    world.create("a")
    await world.settle()
    world.delete("a")
    await world.settle()
    await world.pass_time(99)
    assert world.state("b").endswith("waiting for a (does not exist)")
    await world.pass_time(1)
    assert world.status("b")["phase"] == "DeadLetter"


async def test_a_suspended_job_is_not_given_up_for_one_that_is_missing() -> None:
    world = World(Options(missing_dependency_timeout=100))
    world.create("b", "a", suspend=True)
    await world.settle()
    await world.pass_time(1000)
    assert world.status("b")["reason"] == "Suspended"
    world.wish("b", suspend=False)
    await world.settle()
    assert world.state("b").endswith("waiting for a (does not exist)")


async def test_without_a_timeout_a_missing_job_is_waited_for_for_ever() -> None:
    world = World(Options(missing_dependency_timeout=0))
    world.create("b", "a")
    await world.pass_time(1e9)
    assert world.status("b")["phase"] == "Pending"


async def test_that_a_job_is_missing_is_confirmed_by_a_live_read() -> None:
    world = World(Options(missing_dependency_timeout=100))
    world.create("b", "a")
    await world.settle()
    world.blind = True
    world.create("a")
    world.blind = False
    await world.pass_time(100)
    await world.pass_time(61)
    assert world.state("b").endswith("waiting for a")


async def test_a_dependency_that_disappears_takes_nothing_back_from_who_was_let_through(
    world: World,
) -> None:
    world.create("a")
    world.create("b", "a")
    world.end("a")
    await world.settle()
    world.delete("a")
    await world.settle()
    assert world.claimable() == ["b"]


@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac"])
async def test_jobs_that_wait_for_one_another_are_given_up_with_the_way_round(
    world: World, order: str
) -> None:
    needs = {"a": "b", "b": "c", "c": "a", "d": "a"}
    for name in order:
        world.create(name, needs[name])
    await world.settle()
    for way in ("a → b → c → a", "b → c → a → b", "c → a → b → c"):
        assert world.state(way[0]) == f"{GIVEN_UP}jobs wait for one another: {way}"
    assert world.state("d") == f"{GIVEN_UP}a is a dead letter (DependencyFailed)"


async def test_a_cycle_with_a_gap_is_none_yet(world: World) -> None:
    world.create("a", "b")
    world.create("b", "c")
    await world.settle()
    assert world.state("b").endswith("waiting for c (does not exist)")
    world.create("c", "a")
    await world.settle()
    assert world.state("a").endswith("a → b → c → a")


async def test_a_long_cycle_is_told_with_its_ends(world: World) -> None:
    for number in range(10):
        world.create(f"j{number}", f"j{(number + 1) % 10}")
    await world.settle()
    assert world.state("j0").endswith("j0 → j1 → j2 → (5 more) → j8 → j9 → j0")


async def test_a_cycle_is_confirmed_by_live_reads_and_its_end_sets_the_others_free(
    world: World,
) -> None:
    world.create("a", "b")
    world.blind = True
    world.create("b", "a")
    cycle = world.get("b")
    world.delete("b")
    world.blind = False
    world.observer.saw(cycle, live=True)
    await world.settle()
    await world.pass_time(61)
    assert world.state("a").endswith("waiting for b (does not exist)")


async def test_who_gets_out_of_a_cycle_sets_the_others_free(world: World) -> None:
    world.create("a", {"name": "b", **ANY})
    world.create("b", "a")
    world.store("b", {**world.get("b"), "status": {"phase": "Cancelled"}})
    await world.settle()
    assert world.claimable() == ["a"]


async def test_dead_letters_that_are_redriven_into_a_cycle_are_given_up_again() -> None:
    world = World(Options(missing_dependency_timeout=1))
    world.create("b", "a")
    await world.settle()
    await world.pass_time(1)
    world.create("a", "b")
    await world.settle()
    for name in "ab":
        assert world.state(name).startswith(GIVEN_UP)
        world.wish(name, redrive=1)
    await world.settle()
    assert world.state("a").endswith("a → b → a")


async def test_a_restart_finds_cycles_in_whatever_order_jobs_are_listed(world: World) -> None:
    world.create("b", "a")
    world.create("a", "b")
    world.restart()
    await world.settle()
    assert world.state("b").endswith("b → a → b")


async def test_children_that_are_waited_for_hold_the_job_back_and_then_let_it_through(
    world: World,
) -> None:
    world.create("p")
    world.create("sum", {"name": "p", "children": True})
    world.start("p")
    world.create("c1", parent="p")
    world.create("c2", parent="p")
    world.end("p")
    await world.settle()
    assert world.state("sum").endswith("waiting for children of p")
    world.end("c1")
    world.end("c2")
    await world.settle()
    assert world.claimable() == ["sum"]


async def test_a_child_that_fails_counts_unless_any_end_does(world: World) -> None:
    world.create("p")
    world.create("strict", {"name": "p", "children": True})
    world.create("lax", {"name": "p", "children": True, **ANY})
    world.start("p")
    world.create("c1", parent="p")
    world.create("c2", parent="p")
    await world.settle()
    world.end("c1", "DeadLetter", "NotRetryable")
    await world.settle()
    assert world.state("strict") == f"{GIVEN_UP}c1 is a dead letter (NotRetryable)"
    assert world.state("lax").endswith("waiting for p")
    world.end("c2")
    world.end("p")
    await world.settle()
    assert world.claimable() == ["lax"]


@pytest.mark.parametrize("phase", ["Queued", "DeadLetter"])
async def test_a_child_not_seen_yet_is_found_by_a_live_list(world: World, phase: str) -> None:
    world.create("p")
    world.create("sum", {"name": "p", "children": True})
    await world.settle()
    world.start("p")
    world.blind = True
    world.create("c", parent="p")
    if phase != "Queued":
        world.end("c", phase, "NotRetryable")
    world.blind = False
    world.end("p")
    await world.settle()
    await world.pass_time(61)
    assert world.claimable() == (["c"] if phase == "Queued" else [])
    assert ("sum" in world.claimable()) is False
    assert world.status("sum")["phase"] == ("Pending" if phase == "Queued" else "DeadLetter")


@pytest.mark.parametrize("order", list(permutations(("p", "sum", "c"))), ids="-".join)
async def test_a_child_that_waits_for_who_waits_for_it_is_a_cycle(
    world: World, order: tuple[str, ...]
) -> None:
    ways = {
        "p": lambda: world.create("p"),
        "sum": lambda: world.create("sum", {"name": "p", "children": True}),
        "c": lambda: world.create("c", "sum", parent="p"),
    }
    for name in order:
        ways[name]()
    await world.settle()
    assert world.state("c").endswith("c → sum → c")
    assert world.state("sum").endswith("sum → c → sum")
    assert world.claimable() == ["p"]


async def test_a_cancel_that_cascades_takes_along_children_and_those_who_wait(world: World) -> None:
    world.create("p", cancelCascade=True)
    world.start("p")
    world.create("child", parent="p")
    world.create("running", parent="p")
    world.start("running")
    world.create("grandchild", parent="child")
    world.create("next", "p")
    world.create("after-next", "next")
    world.create("cleanup", {"name": "p", **ANY})
    world.create("stranger")
    await world.settle()
    world.wish("p", cancel=True)
    await world.settle()
    for name in ("child", "grandchild", "next", "after-next"):
        assert world.state(name).startswith("Cancelled CancelRequested"), name
    assert world.state("grandchild").endswith("cancelled by spec.cancel, with child")
    assert world.get("running")["spec"]["cancel"] is True
    assert world.status("running")["phase"] == "Running"
    world.end("p", "Cancelled", "CancelRequested")
    await world.settle()
    assert world.claimable() == ["cleanup", "stranger"]


async def test_a_child_that_comes_late_concerns_nobody_who_was_let_through(world: World) -> None:
    world.create("p")
    world.create("sum", {"name": "p", "children": True})
    world.end("p")
    await world.settle()
    world.create("late", parent="p", cancel=True, cancelCascade=True)
    await world.settle()
    assert world.claimable() == ["sum"]


async def test_a_cancel_that_does_not_cascade_leaves_children_alone(world: World) -> None:
    world.create("p")
    world.create("child", parent="p")
    world.wish("p", cancel=True)
    await world.settle()
    assert world.status("p")["phase"] == "Cancelled"
    assert world.claimable() == ["child"]
    world.wish("p", cancelCascade=True)
    await world.settle()
    assert world.status("child")["phase"] == "Cancelled"


async def test_a_job_that_comes_after_the_cascade_goes_with_it_too(world: World) -> None:
    world.create("p", cancel=True, cancelCascade=True)
    await world.settle()
    world.create("late", parent="p")
    world.create("next", "p")
    await world.settle()
    assert {world.status(name)["phase"] for name in ("late", "next")} == {"Cancelled"}


async def test_a_parent_in_another_namespace_is_none(world: World) -> None:
    elsewhere: Any = raw("p", spec={"cancel": True, "cancelCascade": True})
    elsewhere["metadata"]["namespace"] = "elsewhere"
    world.observer.saw(elsewhere, live=True)
    world.create("child", parent="p")
    child = world.observer.store.get("uid-child")
    assert child
    assert world.observer.kinship.ties(child).parent is None


async def test_success_in_spite_of_a_cancel_takes_nobody_along(world: World) -> None:
    world.create("p")
    world.end("p")
    world.blind = True
    world.wish("p", cancel=True, cancelCascade=True)
    world.blind = False
    world.restart()
    world.create("child", parent="p")
    world.create("next", "p")
    await world.settle()
    assert world.claimable() == ["child", "next"]


async def test_that_a_job_cascades_is_confirmed_by_a_live_read(world: World) -> None:
    world.create("p", cancel=True, cancelCascade=True)
    await world.settle()
    world.blind = True
    world.wish("p", cancelCascade=False)
    world.blind = False
    world.create("child", parent="p")
    await world.settle()
    await world.pass_time(61)
    assert world.claimable() == ["child"]


def record(world: World, name: str) -> Finished:
    [found] = [one for one in world.observer.store.finished() if one.name == name]
    return found


async def test_what_somebody_waits_for_is_needed_until_the_last_has_started(world: World) -> None:
    world.create("p")
    world.create("c", parent="p")
    world.create("free")
    world.create("sum", {"name": "p", "children": True}, "free")
    for name in ("p", "c"):
        world.end(name)
    await world.settle()
    needed = world.observer.kinship.is_needed
    assert needed(record(world, "p"))
    assert needed(record(world, "c"))
    world.end("free")
    await world.settle()
    assert needed(record(world, "p"))
    world.start("sum")
    assert not any(needed(one) for one in world.observer.store.finished())


async def test_a_retry_does_not_wait_for_dependencies_again(world: World) -> None:
    world.create("a")
    world.create("b", "a")
    world.end("a")
    await world.settle()
    world.start("b")
    world.delete("a")
    await world.settle()
    status = {**world.status("b"), "phase": "Retrying", "retries": 1, "retryDelaySeconds": 1.0}
    del status["lease"], status["admitted"]
    world.store("b", {**world.get("b"), "status": status})
    await world.settle()
    await world.pass_time(2)
    assert world.claimable() == ["b"]


async def test_jobs_without_ties_leave_no_trace_but_their_names(world: World) -> None:
    world.create("a")
    world.create("b", "a", parent="a")
    world.delete("b")
    world.delete("a")
    relations = world.observer.store.relations
    assert not relations._by_name
    assert not relations._phases
    assert not relations.waiting_for("ns", "a")
    assert not relations.children("uid-a")
