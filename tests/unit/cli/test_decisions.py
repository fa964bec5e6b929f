"""Exit codes, ends of a wait, what is said before many dead letters are touched."""

from itertools import islice

import pytest

from asyncjob import errors as base
from asyncjob.cli.commands.dead_letters import BulkAction, bulk_summary, confirmation_question
from asyncjob.cli.commands.wait import FINISHED, TargetState, evaluate_wait, poll_intervals
from asyncjob.cli.connection import ConnectionOptions
from asyncjob.cli.error_messages import error_message, exit_code_for
from asyncjob.cli.exit_codes import ExitCode, worst_exit_code
from asyncjob.cli.output.printer import use_colour
from asyncjob.client import errors
from asyncjob.rest.jobs import HistoryEvent
from asyncjob.rest.listing import BulkReport
from support.in_memory.fake_jobs import a_job


def test_the_worst_of_several_codes_counts() -> None:
    assert worst_exit_code([]) is worst_exit_code([ExitCode.OK]) is ExitCode.OK
    assert (
        worst_exit_code([ExitCode.TIMEOUT, ExitCode.DEAD_LETTER, ExitCode.OK])
        is ExitCode.DEAD_LETTER
    )
    assert worst_exit_code([ExitCode.CONFLICT, ExitCode.NOT_FOUND]) is ExitCode.NOT_FOUND
    assert worst_exit_code([ExitCode.CONFLICT]) is ExitCode.CONFLICT


@pytest.mark.parametrize(
    ("phase", "target", "come", "code"),
    [
        ("Succeeded", FINISHED, TargetState.REACHED, ExitCode.OK),
        ("DeadLetter", FINISHED, TargetState.REACHED, ExitCode.DEAD_LETTER),
        ("Cancelled", FINISHED, TargetState.REACHED, ExitCode.CANCELLED),
        ("Running", FINISHED, TargetState.NOT_YET, ExitCode.OK),
        ("DeadLetter", "DeadLetter", TargetState.REACHED, ExitCode.OK),
        ("Queued", "Running", TargetState.NOT_YET, ExitCode.OK),
        ("Running", "Running", TargetState.REACHED, ExitCode.OK),
        ("Succeeded", "Cancelled", TargetState.UNREACHABLE, ExitCode.OTHER_END),
        ("DeadLetter", "Succeeded", TargetState.UNREACHABLE, ExitCode.DEAD_LETTER),
    ],
)
def test_a_wait_ends_by_what_became_of_the_job(
    phase: str, target: str, come: TargetState, code: ExitCode
) -> None:
    verdict = evaluate_wait(a_job(phase=phase), target)
    assert (verdict.state, verdict.code) == (come, code)


def test_a_phase_that_came_and_went_has_come() -> None:
    again = [HistoryEvent(time="2026-11-21T20:00:00Z", phase="Retrying", attempt=1)]
    assert (
        evaluate_wait(a_job(phase="Succeeded", attempt=2, history=again), "Retrying").state
        is TargetState.REACHED
    )
    assert (
        evaluate_wait(a_job(phase="Succeeded", attempt=1), "Running").state is TargetState.REACHED
    )


def test_a_wait_looks_soon_at_first_and_then_as_often_as_was_said() -> None:
    assert list(islice(poll_intervals(1.0), 5)) == [0.2, 0.4, 0.8, 1.0, 1.0]
    assert list(islice(poll_intervals(0.1), 2)) == [0.1, 0.1]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.JobNotFoundError("no x"), ExitCode.NOT_FOUND, "no x (aj list shows"),
        (errors.DuplicateJobError("d", job_id="y"), ExitCode.CONFLICT, "(aj wait y waits"),
        (errors.KeyReusedError("k"), ExitCode.CONFLICT, "k"),
        (errors.NotAllowedError("may not"), ExitCode.NOT_ALLOWED, "may not"),
        (errors.UnauthenticatedError("who"), ExitCode.NOT_ALLOWED, "--token"),
        (errors.GatewayUnavailableError("away"), ExitCode.UNAVAILABLE, "try again"),
        (errors.InvalidSubmissionError(message="bad"), ExitCode.USAGE, "bad"),
        (base.NoClusterError("none"), ExitCode.UNAVAILABLE, "none"),
        (base.UnknownOutcomeError("no answer\nat all"), ExitCode.UNAVAILABLE, "no answer at all"),
        (base.ForbiddenError("rbac"), ExitCode.NOT_ALLOWED, "rbac"),
        (base.AsyncJobError("odd"), ExitCode.FAILED, "odd"),
    ],
)
def test_errors_are_one_line_with_the_way_out_and_a_code(
    error: base.AsyncJobError, code: ExitCode, said: str
) -> None:
    assert exit_code_for(error) is code
    assert said in error_message(error, "aj")
    assert "\n" not in error_message(error, "aj")


def test_every_error_of_the_clients_that_a_script_can_act_on_has_a_code() -> None:
    ended = {errors.JobFailedError, errors.ArrayFailedError}
    kinds = {getattr(errors, name) for name in errors.__all__} - ended
    without = {kind.__name__ for kind in kinds if exit_code_for(kind()) is ExitCode.FAILED}
    assert without == {"ResultElsewhereError", "ItemResultsError"}


@pytest.mark.parametrize(
    ("report", "asked", "told"),
    [
        (
            BulkReport(matched=1, done=["a"]),
            "Redrive 1 dead letter (a)?",
            "redriven 1 dead letter",
        ),
        (
            BulkReport(matched=9, done=["a", "b", "c", "d"]),
            "Redrive 4 dead letters (a, b, c and 1 more; 5 more match, see --limit)?",
            "redriven 4 dead letters; 5 more match: repeat the command, or raise --limit",
        ),
        (
            BulkReport(matched=2, done=["a"], failed=[{"id": "b", "detail": "x"}]),
            "Redrive 1 dead letter (a)?",
            "redriven 1 dead letter; 1 failed",
        ),
        (
            BulkReport(matched=1, done=["a"], dry_run=True),
            "Redrive 1 dead letter (a)?",
            "would redrive 1 dead letter",
        ),
    ],
)
def test_what_is_asked_and_told_about_many(report: BulkReport, asked: str, told: str) -> None:
    assert confirmation_question(BulkAction.REDRIVE, report) == asked
    assert bulk_summary(BulkAction.REDRIVE, report) == told


@pytest.mark.parametrize(
    ("environ", "terminal", "refused", "colour"),
    [
        ({}, True, False, True),
        ({}, False, False, False),
        ({}, True, True, False),
        ({"NO_COLOR": "1"}, True, False, False),
        ({"NO_COLOR": ""}, True, False, True),
        ({"TERM": "dumb"}, True, False, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    environ: dict[str, str], terminal: bool, refused: bool, colour: bool
) -> None:
    assert use_colour(environ, terminal=terminal, disabled=refused) is colour


def test_what_a_command_says_of_a_place_wins_over_the_root() -> None:
    said = ConnectionOptions(namespace="mail", server="").with_defaults(
        ConnectionOptions(namespace="x", server="u", token="t")
    )
    assert said == ConnectionOptions(namespace="mail", server="", token="t")
