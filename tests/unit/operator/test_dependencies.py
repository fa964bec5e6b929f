"""Jobs that depend on others: when they start, when they are given up, and what they say."""

import pytest

from asyncjob_operator.controllers.job_evaluator import MAX_EVALUATED_AT_ONCE
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.core.retention import FinishedJob
from support.parts.operator_harness import OperatorHarness

ANY = {"outcome": "Any"}
GIVEN_UP = "DeadLetter DependencyFailed cannot start: "


@pytest.fixture
def harness() -> OperatorHarness:
    return OperatorHarness()


async def test_a_job_waits_for_all_it_depends_on_and_says_for_which(
    harness: OperatorHarness,
) -> None:
    for name in "abcde":
        harness.create(name)
    harness.create("last", *"abcde")
    await harness.settle()
    assert harness.state("last") == "Pending WaitingForDependency waiting for a, b, c and 2 more"
    for name in "abc":
        harness.end(name)
    await harness.settle()
    assert harness.state("last") == "Pending WaitingForDependency waiting for d and e"
    harness.end("d")
    harness.end("e")
    await harness.settle()
    assert harness.state("last") == "Queued GateOpened"
    assert "last" in harness.claimable()


async def test_a_job_whose_dependencies_are_met_already_is_admitted_where_it_stands(
    harness: OperatorHarness,
) -> None:
    harness.create("a")
    harness.end("a")
    harness.create("b", "a")
    await harness.settle()
    assert harness.claimable() == ["b"]
    assert "reason" not in harness.status("b")


async def test_jobs_may_be_created_in_any_order(harness: OperatorHarness) -> None:
    harness.create("c", "b")
    harness.create("b", "a")
    await harness.settle()
    assert harness.state("b").endswith("waiting for a (does not exist)")
    harness.create("a")
    await harness.settle()
    assert harness.state("b").endswith("waiting for a")
    for name in "abc":
        assert harness.claimable() == [name]
        harness.end(name)
        await harness.settle()


async def test_very_many_that_wait_for_one_job_are_let_through_bit_by_bit(
    harness: OperatorHarness,
) -> None:
    harness.create("p")
    names = [f"j{number:03}" for number in range(MAX_EVALUATED_AT_ONCE + 1)]
    for name in names:
        harness.create(name, "p")
    await harness.settle()
    harness.end("p")
    await harness.settle()
    assert harness.claimable() == []
    await harness.pass_time(0)
    assert harness.claimable() == names


@pytest.mark.parametrize("phase", ["DeadLetter", "Cancelled"])
async def test_a_dependency_that_does_not_succeed_makes_a_dead_letter(
    harness: OperatorHarness, phase: str
) -> None:
    harness.create("a")
    harness.create("b", "a")
    harness.create("c", "b")
    harness.create("after", {"name": "a", **ANY}, {"name": "c", **ANY})
    await harness.settle()
    harness.end("a", phase, "Why")
    await harness.settle()
    how = "is a dead letter" if phase == "DeadLetter" else "was cancelled"
    assert harness.state("b") == f"{GIVEN_UP}a {how} (Why)"
    assert harness.state("c") == f"{GIVEN_UP}b is a dead letter (DependencyFailed)"
    assert harness.claimable() == ["after"]


async def test_whoever_redrives_the_dependency_redrives_the_dependent_and_it_waits_again(
    harness: OperatorHarness,
) -> None:
    harness.create("a")
    harness.create("b", "a")
    await harness.settle()
    harness.end("a", "DeadLetter", "NotRetryable")
    await harness.settle()
    harness.change_spec("b", redrive=1)
    await harness.settle()
    assert harness.state("b").startswith(GIVEN_UP)
    harness.change_spec("a", redrive=1)
    harness.change_spec("b", redrive=2)
    await harness.settle()
    assert harness.state("b").endswith("waiting for a")
    harness.end("a")
    await harness.settle()
    assert harness.claimable() == ["b"]


async def test_a_failure_is_confirmed_by_a_live_read(harness: OperatorHarness) -> None:
    harness.create("a")
    harness.end("a", "DeadLetter", "NotRetryable")
    harness.blind = True
    harness.change_spec("a", redrive=1)
    harness.store("a", {**harness.get("a"), "status": {"phase": "Queued"}})
    harness.blind = False
    harness.create("b", "a")
    await harness.settle()
    await harness.pass_time(61)
    assert harness.state("b").endswith("waiting for a")


async def test_a_job_that_does_not_exist_is_waited_for_and_then_no_longer() -> None:
    harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=100))
    harness.create("b", "a")
    await harness.settle()
    await harness.pass_time(99)
    assert harness.status("b")["phase"] == "Pending"
    await harness.pass_time(1)
    assert (
        harness.state("b") == f"{GIVEN_UP}a does not exist; waited 100 s for jobs that do not exist"
    )


async def test_waiting_for_a_missing_job_begins_again_when_it_was_there_meanwhile() -> None:
    harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=100))
    harness.create("b", "a")
    await harness.settle()
    await harness.pass_time(99)
    harness.create("a")
    await harness.settle()
    harness.delete("a")
    await harness.settle()
    await harness.pass_time(99)
    assert harness.state("b").endswith("waiting for a (does not exist)")
    await harness.pass_time(1)
    assert harness.status("b")["phase"] == "DeadLetter"


async def test_a_suspended_job_is_not_given_up_for_one_that_is_missing() -> None:
    harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=100))
    harness.create("b", "a", suspend=True)
    await harness.settle()
    await harness.pass_time(1000)
    assert harness.status("b")["reason"] == "Suspended"
    harness.change_spec("b", suspend=False)
    await harness.settle()
    assert harness.state("b").endswith("waiting for a (does not exist)")


async def test_without_a_timeout_a_missing_job_is_waited_for_for_ever() -> None:
    harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=0))
    harness.create("b", "a")
    await harness.pass_time(1e9)
    assert harness.status("b")["phase"] == "Pending"


async def test_that_a_job_is_missing_is_confirmed_by_a_live_read() -> None:
    harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=100))
    harness.create("b", "a")
    await harness.settle()
    harness.blind = True
    harness.create("a")
    harness.blind = False
    await harness.pass_time(100)
    await harness.pass_time(61)
    assert harness.state("b").endswith("waiting for a")


async def test_a_dependency_that_disappears_takes_nothing_back_from_who_was_let_through(
    harness: OperatorHarness,
) -> None:
    harness.create("a")
    harness.create("b", "a")
    harness.end("a")
    await harness.settle()
    harness.delete("a")
    await harness.settle()
    assert harness.claimable() == ["b"]


def record(harness: OperatorHarness, name: str) -> FinishedJob:
    [found] = [one for one in harness.caches.store.finished() if one.name == name]
    return found


async def test_what_somebody_waits_for_is_needed_until_the_last_has_started(
    harness: OperatorHarness,
) -> None:
    harness.create("p")
    harness.create("c", parent="p")
    harness.create("free")
    harness.create("sum", {"name": "p", "children": True}, "free")
    for name in ("p", "c"):
        harness.end(name)
    await harness.settle()
    needed = harness.caches.dependency_graph.is_needed
    assert needed(record(harness, "p"))
    assert needed(record(harness, "c"))
    harness.end("free")
    await harness.settle()
    assert needed(record(harness, "p"))
    harness.start("sum")
    assert not any(needed(one) for one in harness.caches.store.finished())


async def test_a_retry_does_not_wait_for_dependencies_again(harness: OperatorHarness) -> None:
    harness.create("a")
    harness.create("b", "a")
    harness.end("a")
    await harness.settle()
    harness.start("b")
    harness.delete("a")
    await harness.settle()
    status = {**harness.status("b"), "phase": "Retrying", "retries": 1, "retryDelaySeconds": 1.0}
    del status["lease"], status["admitted"]
    harness.store("b", {**harness.get("b"), "status": status})
    await harness.settle()
    await harness.pass_time(2)
    assert harness.claimable() == ["b"]


async def test_jobs_without_ties_leave_no_trace_but_their_names(harness: OperatorHarness) -> None:
    harness.create("a")
    harness.create("b", "a", parent="a")
    harness.delete("b")
    harness.delete("a")
    relations = harness.caches.store.relations
    assert not relations._by_name
    assert not relations._open_children._groups
    assert not relations._failed_children._groups
    assert not relations.dependents(("ns", "AsyncJob", "a"))
    assert not relations.children(("ns", "uid-a"))


async def test_three_jobs_that_are_waited_for_are_all_named(harness: OperatorHarness) -> None:
    for name in "abc":
        harness.create(name)
    harness.create("last", *"abc")
    harness.create("later", *"abc", "last")
    await harness.settle()
    assert harness.state("last") == "Pending WaitingForDependency waiting for a, b and c"
    assert harness.state("later").endswith("waiting for a, b, c and 1 more")
