"""The table at the end."""

from asyncjob_dev.demo.checks import CheckResult, Scenario, ScenarioResult, compare
from asyncjob_dev.demo.view import problems, scenario_table

GOOD = ScenarioResult(Scenario("a", "job-a", "work " * 12, "Succeeded"), CheckResult("Succeeded"))
BAD = ScenarioResult(
    Scenario("b", "job-b", "other work", "DeadLetter"), CheckResult("Queued", ("phase is Queued",))
)


def test_every_row_says_whether_it_was_as_it_should() -> None:
    lines = scenario_table([GOOD, BAD], 120).splitlines()
    assert lines[0].split() == ["JOB", "WHAT", "EXPECTED", "HAPPENED", "OK"]
    assert [line.split()[-1] for line in lines if line.startswith("(")] == ["yes", "NO"]


def test_long_cells_are_wrapped_and_nothing_is_lost() -> None:
    text = scenario_table([GOOD], 100)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert text.count("work") == 12


def test_problems_name_letter_and_job() -> None:
    assert problems([GOOD, BAD]) == ["(b) job-b: phase is Queued"]


def test_only_facts_that_differ_are_problems() -> None:
    found = compare(phase=("Queued", "Queued"), error_type=(None, "TimeoutError"))
    assert found == ("error type is absent, not TimeoutError",)
