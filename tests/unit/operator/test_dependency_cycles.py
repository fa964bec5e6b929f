"""Jobs that wait for one another are given up, with the way round."""

from collections.abc import Iterator
from itertools import count, permutations

import pytest

from asyncjob_operator.core.dependencies import find_cycle
from asyncjob_operator.core.options import DecisionOptions
from support.parts.operator_harness import OperatorHarness

ANY = {"outcome": "Any"}
GIVEN_UP = "DeadLetter DependencyFailed cannot start: "


@pytest.fixture
def harness() -> OperatorHarness:
    return OperatorHarness()


@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac"])
async def test_jobs_that_wait_for_one_another_are_given_up_with_the_way_round(
    harness: OperatorHarness, order: str
) -> None:
    needs = {"a": "b", "b": "c", "c": "a", "d": "a"}
    for name in order:
        harness.create(name, needs[name])
    await harness.settle()
    for way in ("a → b → c → a", "b → c → a → b", "c → a → b → c"):
        assert harness.state(way[0]) == f"{GIVEN_UP}jobs wait for one another: {way}"
    assert harness.state("d") == f"{GIVEN_UP}a is a dead letter (DependencyFailed)"


async def test_a_cycle_with_a_gap_is_none_yet(harness: OperatorHarness) -> None:
    harness.create("a", "b")
    harness.create("b", "c")
    await harness.settle()
    assert harness.state("b").endswith("waiting for c (does not exist)")
    harness.create("c", "a")
    await harness.settle()
    assert harness.state("a").endswith("a → b → c → a")


def test_a_search_gives_up_within_a_job_that_waits_for_very_many_too() -> None:
    followed: list[str] = []

    def waits_for(_uid: str) -> Iterator[str]:
        for number in count():
            followed.append(str(number))
            assert number < 1000
            yield str(number)

    assert find_cycle("a", waits_for, limit=10) == ()
    assert len(followed) == 11


async def test_a_long_cycle_is_told_with_its_ends(harness: OperatorHarness) -> None:
    for number in range(10):
        harness.create(f"j{number}", f"j{(number + 1) % 10}")
    await harness.settle()
    assert harness.state("j0").endswith("j0 → j1 → j2 → (5 more) → j8 → j9 → j0")


async def test_a_cycle_is_confirmed_by_live_reads_and_its_end_sets_the_others_free(
    harness: OperatorHarness,
) -> None:
    harness.create("a", "b")
    harness.blind = True
    harness.create("b", "a")
    cycle = harness.get("b")
    harness.delete("b")
    harness.blind = False
    harness.observer.on_update(cycle, just_changed=True)
    await harness.settle()
    await harness.pass_time(61)
    assert harness.state("a").endswith("waiting for b (does not exist)")


async def test_who_gets_out_of_a_cycle_sets_the_others_free(harness: OperatorHarness) -> None:
    harness.create("a", {"name": "b", **ANY})
    harness.create("b", "a")
    harness.store("b", {**harness.get("b"), "status": {"phase": "Cancelled"}})
    await harness.settle()
    assert harness.claimable() == ["a"]


async def test_dead_letters_that_are_redriven_into_a_cycle_are_given_up_again() -> None:
    harness = OperatorHarness(DecisionOptions(missing_dependency_timeout=1))
    harness.create("b", "a")
    await harness.settle()
    await harness.pass_time(1)
    harness.create("a", "b")
    await harness.settle()
    for name in "ab":
        assert harness.state(name).startswith(GIVEN_UP)
        harness.change_spec(name, redrive=1)
    await harness.settle()
    assert harness.state("a").endswith("a → b → a")


async def test_a_restart_finds_cycles_in_whatever_order_jobs_are_listed(
    harness: OperatorHarness,
) -> None:
    harness.create("b", "a")
    harness.create("a", "b")
    harness.restart()
    await harness.settle()
    assert harness.state("b").endswith("b → a → b")


@pytest.mark.parametrize("order", list(permutations(("p", "sum", "c"))), ids="-".join)
async def test_a_child_that_waits_for_who_waits_for_it_is_a_cycle(
    harness: OperatorHarness, order: tuple[str, ...]
) -> None:
    ways = {
        "p": lambda: harness.create("p"),
        "sum": lambda: harness.create("sum", {"name": "p", "children": True}),
        "c": lambda: harness.create("c", "sum", parent="p"),
    }
    for name in order:
        ways[name]()
    await harness.settle()
    assert harness.state("c").endswith("c → sum → c")
    assert harness.state("sum").endswith("sum → c → sum")
    assert harness.claimable() == ["p"]


async def test_a_cycle_is_told_whole_as_long_as_nothing_would_be_won_by_leaving_out(
    harness: OperatorHarness,
) -> None:
    for number in range(5):
        harness.create(f"j{number}", f"j{(number + 1) % 5}")
    await harness.settle()
    assert harness.state("j0").endswith(": j0 → j1 → j2 → j3 → j4 → j0")


async def test_of_a_cycle_that_is_longer_it_is_told_how_many_are_left_out(
    harness: OperatorHarness,
) -> None:
    for number in range(6):
        harness.create(f"j{number}", f"j{(number + 1) % 6}")
    await harness.settle()
    assert harness.state("j0").endswith(": j0 → j1 → j2 → (1 more) → j4 → j5 → j0")
