"""What is begun next, and that nothing is begun that cannot end in time."""

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case_plan import CasePlan, Recording, turns
from asyncjob_perturbation.plan import (
    AT_CALLS,
    EXTRA_SECONDS,
    Case,
    Part,
    When,
    all_cases,
    selected,
)
from asyncjob_perturbation.scenarios import SCENARIOS

FOREVER = float("inf")
RETRY, CRASH = ("retry", Part.WORKER), ("crash", Part.WORKER)


def cases_of(pair: tuple[str, Part], count: int = 4) -> list[Case]:
    calls = [Call("PATCH asyncjobs/a/status", n + 1) for n in range(count)]
    return selected(all_cases(*pair, calls), None, AT_CALLS)


def taken(case_plan: CasePlan, now: float = 0.0) -> list[Recording | Case]:
    found = []
    while item := case_plan.next(now):
        found.append(item)
    return found


def test_every_scenario_comes_before_the_second_part_of_one_and_parts_are_mixed() -> None:
    scenarios = ["plain", "retry", "crash"]
    pairs = turns(scenarios, list(Part), seed=7)
    assert len({*pairs}) == 9
    for turn in range(3):
        assert {scenario for scenario, _ in pairs[3 * turn : 3 * turn + 3]} == {*scenarios}
    first = turns(list(SCENARIOS), list(Part), seed=7)[: len(SCENARIOS)]
    assert {part for _, part in first} == {*Part}
    assert pairs == turns(scenarios, list(Part), seed=7) != turns(scenarios, list(Part), seed=8)


def test_each_recording_is_followed_by_a_few_of_its_cases_before_the_next() -> None:
    case_plan = CasePlan([RETRY, CRASH], 1, FOREVER)
    assert case_plan.next(0.0) == Recording(RETRY)
    case_plan.add(RETRY, cases_of(RETRY), 2.0)
    order = taken(case_plan)
    assert len(order) == 1 + 12
    assert order.index(Recording(CRASH)) == 5


def test_all_cases_come_once_and_in_turns() -> None:
    case_plan = CasePlan([], 1, FOREVER)
    for pair in (RETRY, CRASH):
        case_plan.add(pair, cases_of(pair), 2.0)
    order = taken(case_plan)
    assert {*order} == {*cases_of(RETRY), *cases_of(CRASH)}
    assert len(order) == 24
    later = [case.scenario for case in order[10:] if isinstance(case, Case)]
    assert later == ["retry", "crash"] * 7


def test_what_takes_longer_than_is_left_is_not_begun_and_what_is_shorter_is() -> None:
    case_plan = CasePlan([CRASH], 1, 100.0)
    call = Call("PATCH asyncjobs/a/status", 1)
    event = Call("EVENT asyncjobs/a ADDED", 1)
    merged, late = (Case(*RETRY, 1, event, when) for when in (When.MERGED, When.LATE))
    case_plan.add(RETRY, [merged, late], 2.0)
    left = 2.0 + EXTRA_SECONDS[When.MERGED]
    assert taken(case_plan, 100.0 - left) == [merged]
    assert case_plan.next(100.0 - left) is None
    slow = Case(*RETRY, 1, call, When.AFTER)
    case_plan.took(slow, 30.0)
    case_plan.again(slow)
    assert [case_plan.next(80.0) for _ in range(3)] == [late, Recording(CRASH), None]
    assert slow in taken(case_plan, 70.0)


def test_an_undisturbed_run_is_not_begun_without_time_for_a_case_of_it() -> None:
    case_plan = CasePlan([RETRY, CRASH], 1, 100.0)
    assert case_plan.next(0.0) == Recording(RETRY)
    case_plan.add(RETRY, [], 10.0)
    assert case_plan.next(81.0) is None
    assert case_plan.next(80.0) == Recording(CRASH)
