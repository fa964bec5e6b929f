"""A table of what was run, and for each case that failed how to look at it again."""

import pytest

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.end_state import Difference
from asyncjob_perturbation.plan import Case, Part, When
from asyncjob_perturbation.proxy import Recording
from asyncjob_perturbation.report import Table, complaint, failure
from asyncjob_perturbation.scenarios import SCENARIOS


def outcome(**more: object) -> Outcome:
    made = Outcome(SCENARIOS["retry"], Part.WORKER, {}, Recording(), seconds=2.0)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_the_table_counts_cases_by_scenario_and_part_and_in_all() -> None:
    table = Table()
    table.row("retry", "worker").add(outcome())
    table.row("retry", "worker").add(outcome(reached=False, seconds=4.0))
    table.row("limit", "operator").add(outcome(broken=["a rule"]))
    lines = [line.split() for line in table.lines()]
    assert lines[0] == [
        "scenario", "part", "calls", "events", "cases", "missed", "failed", "s/case", "longest",
    ]  # fmt: skip
    assert lines[1] == ["retry", "worker", "0", "0", "2", "1", "0", "3.0", "4.0"]
    assert lines[2] == ["limit", "operator", "0", "0", "1", "0", "1", "2.0", "2.0"]
    assert lines[3] == ["all", "0", "0", "3", "1", "1", "2.7", "4.0"]


def test_a_failure_says_what_was_expected_what_came_and_how_to_see_it_again() -> None:
    difference = Difference("asyncjobs/flaky phase", "Succeeded", "Running")
    case = Case("retry", Part.WORKER, 7, Call("PATCH asyncjobs/flaky/status", 1), When.AFTER)
    text = failure(case, outcome(differences=[difference], told=["12:00 MODIFIED"]))
    assert text == [
        "retry, worker: after call 7, PATCH asyncjobs/flaky/status #1",
        "    asyncjobs/flaky phase: expected 'Succeeded', came 'Running'",
        "    12:00 MODIFIED",
        "again: make perturb SCENARIO=retry PART=worker "
        "CALL='PATCH asyncjobs/flaky/status #1' WHEN=after",
    ]


def test_an_undisturbed_run_that_fails_is_told_of_as_well() -> None:
    assert failure(None, outcome(broken=["a rule"])) == [
        "retry, worker: undisturbed",
        "    a rule",
    ]


def table_of(cases: int, *, missed: int = 0, failed: int = 0, unjudged: int = 0) -> Table:
    table = Table(unjudged=unjudged)
    row = table.row("retry", "worker")
    row.cases, row.missed, row.failed = cases, missed, failed
    return table


@pytest.mark.parametrize("others", [0.0, 0.9])
def test_a_difference_and_requests_that_do_not_come_fail_a_run_on_any_machine(
    others: float,
) -> None:
    assert complaint(table_of(100, missed=10), 0, others) == ""
    assert "in 11 of 100 cases" in complaint(table_of(100, missed=11), 0, others)
    assert complaint(table_of(100, failed=1), 0, others) == "1 did not end as undisturbed"
    assert complaint(table_of(3, missed=3), 0, others) == ""
    assert complaint(table_of(0), 0, others) == ""


def test_what_cannot_be_judged_fails_a_run_unless_other_programs_kept_the_machine_busy() -> None:
    much = [table_of(90, unjudged=11), table_of(0, unjudged=1)]
    for table in much:
        assert "not judged, and no other program" in complaint(table, 0, 0.2)
        assert complaint(table, 0, 0.3) == ""
    for little in (table_of(91, unjudged=9), table_of(1, unjudged=1)):
        assert complaint(little, 0, 0.0) == ""


def test_a_run_in_which_no_case_has_ended_in_time_fails_for_the_same_reason() -> None:
    assert "--minutes" in complaint(table_of(0), 1, 0.2)
    assert complaint(table_of(0), 1, 0.3) == ""
    assert complaint(table_of(1), 1, 0.2) == ""
