"""A table of what was run, and for each case that failed how to look at it again."""

import pytest

from asyncjob_perturbation.calls import Call
from asyncjob_perturbation.case import Outcome
from asyncjob_perturbation.end_state import Difference
from asyncjob_perturbation.plan import Case, Part, When
from asyncjob_perturbation.proxy import Recording
from asyncjob_perturbation.report import Table, by_kind, complaint, failure
from asyncjob_perturbation.scenarios import SCENARIOS


def outcome(**more: object) -> Outcome:
    made = Outcome(SCENARIOS["retry"], Part.WORKER, {}, Recording(), seconds=2.0)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_the_table_counts_cases_by_scenario_and_part_and_in_all() -> None:
    table = Table()
    at_read = Case("retry", Part.WORKER, 1, Call("GET asyncjobs/flaky", 1), When.BEFORE)
    table.add(at_read, outcome())
    table.add(at_read, outcome(reached=False, seconds=4.0))
    at_event = Case("limit", Part.OPERATOR, 1, Call("EVENT asyncjobs/flaky ADDED", 1), When.GAP)
    table.add(at_event, outcome(broken=["a rule"]))
    assert by_kind(table)[2:] == [
        "| `before` | reads | 2 | 0 | 0 | 1 |",
        "| `gap` | events | 1 | 0 | 1 | 0 |",
    ]
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


def kinds_of(**missed: tuple[int, int]) -> Table:
    """Return a table of so many missed of so many cases at reads, for each way of interfering."""
    table = Table()
    for when, (few, many) in missed.items():
        for number in range(many):
            case = Case("retry", Part.WORKER, number, Call("GET asyncjobs/flaky", 1), When(when))
            table.add(case, outcome(reached=number >= few))
    return table


@pytest.mark.parametrize("others", [0.0, 0.9])
def test_a_difference_and_requests_that_do_not_come_fail_a_run_on_any_machine(
    others: float,
) -> None:
    def whole(table: Table) -> str:
        return complaint(table, 0, others, table)

    assert whole(table_of(100, missed=10)) == ""
    assert "in 11 of all 100 cases" in whole(table_of(100, missed=11))
    assert whole(table_of(100, failed=1)) == "1 did not end as undisturbed"
    assert whole(table_of(3, missed=3)) == ""
    assert whole(table_of(0)) == ""


def test_of_a_piece_a_tenth_may_be_missed_as_long_as_it_is_no_tenth_of_all() -> None:
    piece = kinds_of(before=(34, 266), after=(35, 266), lost=(21, 207))
    assert complaint(piece, 0, 0.0) == ""
    assert complaint(piece, 0, 0.0, table_of(2836, missed=133)) == ""
    assert "in 284 of all 2836 cases" in complaint(piece, 0, 0.0, table_of(2836, missed=284))


def test_an_interference_that_is_not_carried_out_fails_a_piece_whatever_else_was_run() -> None:
    table = kinds_of(before=(0, 500), lost=(11, 20))
    assert complaint(table, 0, 0.0, table) == (
        "in 11 of 20 cases of `lost` at reads the request or event did not come"
    )
    assert complaint(kinds_of(before=(0, 500), lost=(10, 20)), 0, 0.0) == ""
    assert complaint(kinds_of(lost=(19, 19)), 0, 0.0) == ""


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
