"""Jobs that depend on others: when they start, when they are given up, and what they say."""

import pytest

from asyncjob_operator.controllers.job_evaluator import MAX_EVALUATED_AT_ONCE
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.core.retention import FinishedJob
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
    names = [f"j{number:03}" for number in range(MAX_EVALUATED_AT_ONCE + 1)]
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
    world.change_spec("b", redrive=1)
    await world.settle()
    assert world.state("b").startswith(GIVEN_UP)
    world.change_spec("a", redrive=1)
    world.change_spec("b", redrive=2)
    await world.settle()
    assert world.state("b").endswith("waiting for a")
    world.end("a")
    await world.settle()
    assert world.claimable() == ["b"]


async def test_a_failure_is_confirmed_by_a_live_read(world: World) -> None:
    world.create("a")
    world.end("a", "DeadLetter", "NotRetryable")
    world.blind = True
    world.change_spec("a", redrive=1)
    world.store("a", {**world.get("a"), "status": {"phase": "Queued"}})
    world.blind = False
    world.create("b", "a")
    await world.settle()
    await world.pass_time(61)
    assert world.state("b").endswith("waiting for a")


async def test_a_job_that_does_not_exist_is_waited_for_and_then_no_longer() -> None:
    world = World(DecisionOptions(missing_dependency_timeout=100))
    world.create("b", "a")
    await world.settle()
    await world.pass_time(99)
    assert world.status("b")["phase"] == "Pending"
    await world.pass_time(1)
    assert (
        world.state("b") == f"{GIVEN_UP}a does not exist; waited 100 s for jobs that do not exist"
    )


async def test_waiting_for_a_missing_job_begins_anew_when_it_was_there_meanwhile() -> None:
    world = World(DecisionOptions(missing_dependency_timeout=100))
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
    world = World(DecisionOptions(missing_dependency_timeout=100))
    world.create("b", "a", suspend=True)
    await world.settle()
    await world.pass_time(1000)
    assert world.status("b")["reason"] == "Suspended"
    world.change_spec("b", suspend=False)
    await world.settle()
    assert world.state("b").endswith("waiting for a (does not exist)")


async def test_without_a_timeout_a_missing_job_is_waited_for_for_ever() -> None:
    world = World(DecisionOptions(missing_dependency_timeout=0))
    world.create("b", "a")
    await world.pass_time(1e9)
    assert world.status("b")["phase"] == "Pending"


async def test_that_a_job_is_missing_is_confirmed_by_a_live_read() -> None:
    world = World(DecisionOptions(missing_dependency_timeout=100))
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


def record(world: World, name: str) -> FinishedJob:
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
    needed = world.observer.dependency_graph.is_needed
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
    assert not relations._open_children._groups
    assert not relations._failed_children._groups
    assert not relations.dependents("ns", "a")
    assert not relations.children(("ns", "uid-a"))


async def test_three_jobs_that_are_waited_for_are_all_named(world: World) -> None:
    for name in "abc":
        world.create(name)
    world.create("last", *"abc")
    world.create("later", *"abc", "last")
    await world.settle()
    assert world.state("last") == "Pending WaitingForDependency waiting for a, b and c"
    assert world.state("later").endswith("waiting for a, b, c and 1 more")
