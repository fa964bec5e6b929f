"""Which cases there are, how one of them is chosen, and which a budget takes first."""

import pytest

from asyncjob_perturbation.calls import Call, is_write
from asyncjob_perturbation.plan import (
    At,
    NoSuchCallError,
    Part,
    When,
    all_cases,
    selected,
    shuffled,
)

CALLS = [
    *(Call("LIST pods", number) for number in range(1, 13)),
    *(Call("PATCH asyncjobs/a/status Running", number) for number in range(1, 5)),
]
CASES = all_cases("retry", Part.WORKER, CALLS)


def test_each_call_and_each_event_is_three_cases_a_watch_two_and_a_write_five() -> None:
    assert len(CASES) == 3 * 12 + 5 * 4
    assert [case.when for case in CASES if case.number == 16] == [
        When.BEFORE,
        When.AFTER,
        When.LOST,
        When.STALE,
        When.STALE_START,
    ]
    assert [case.when for case in CASES[:3]] == [When.BEFORE, When.AFTER, When.LOST]
    events = [Call("EVENT asyncjobs/a ADDED Queued", 1)]
    cases = all_cases("retry", Part.OPERATOR, [Call("WATCH asyncjobs", 1)], events)
    assert [(case.number, case.when) for case in cases] == [
        (1, When.BEFORE),
        (1, When.AFTER),
        (2, When.MERGED),
        (2, When.GAP),
        (2, When.LATE),
    ]


def test_a_case_is_run_again_by_the_command_that_it_prints() -> None:
    case = CASES[-10]
    assert case.command() == (
        "make perturb SCENARIO=retry PART=worker "
        "CALL='PATCH asyncjobs/a/status Running #4' WHEN=after"
    )
    assert selected(CASES, str(case.call), [case.when]) == [case]
    assert selected(CASES, "16", [When.AFTER]) == [case]
    assert selected(CASES, "16", at=[At.READS]) == []
    assert {case.call for case in selected(CASES, None, at=[At.WRITES])} == {*CALLS[12:]}


def test_a_call_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(NoSuchCallError, match="16 PATCH asyncjobs/a/status Running #4"):
        selected(CASES, "17")


def test_a_budget_takes_writes_first_and_a_seed_is_the_same_order_again() -> None:
    order = shuffled(CASES, 4711)
    assert order == shuffled(CASES, 4711) != shuffled(CASES, 4712)
    assert sorted(order, key=str) == sorted(CASES, key=str)
    assert sum(is_write(case.call) for case in order[:8]) == 6
