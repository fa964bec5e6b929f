"""`asyncjob explain`: explains a code, lists all, suggests near ones, and needs no cluster."""

import json
import os
import subprocess
import sys

import pytest

from asyncjob.cli.commands.completion import kubectl_completions
from asyncjob.cli.entry import root
from asyncjob.cli.output.explanation import explanation_lines
from asyncjob.explanations.catalog import catalog
from asyncjob.explanations.texts import Explanation
from support.parts.cli_shell import Shell


def test_a_code_is_explained_with_reason_way_out_and_example(shell: Shell) -> None:
    text = shell.ok("explain", "CrashBudgetExhausted")
    assert text.startswith("CrashBudgetExhausted (reason of a job)\n")
    for part in ("\nWhy\n", "\nWhat to do\n", "\nExample\n", "asyncjob redrive"):
        assert part in text
    assert text.endswith("In the documentation: Reasons of a job. All codes: asyncjob explain\n")
    assert max(map(len, text.splitlines())) <= 100
    assert "`" not in text


@pytest.mark.parametrize("entry", catalog(), ids=[f"{it.kind}-{it.code}" for it in catalog()])
def test_nothing_is_said_that_takes_a_clone_of_the_repository(entry: Explanation) -> None:
    lines = list(explanation_lines(entry, colour=False, width=None))
    said = "\n".join([*lines[: lines.index("Example")], *lines[-1:]])
    assert ".md" not in said
    assert "docs/" not in said


def test_a_rule_says_what_the_api_server_says(shell: Shell) -> None:
    text = shell.ok("explain", "(history.grows)")
    assert text.startswith("history.grows (rule, HTTP 422)\n")
    assert "Each change of phase except a claim, a park and the promotion that ends it adds" in text


def test_without_a_code_all_are_listed_by_kind(shell: Shell) -> None:
    text = shell.ok("explain")
    for one in catalog():
        assert f"\n{one.code} " in text
    assert text.startswith("REASON OF A JOB ")
    assert "\nRULE " in text


def test_programs_get_all_fields(shell: Shell) -> None:
    [one] = [json.loads(shell.ok("explain", "history.grows", "-o", "json"))]
    assert set(one) == {
        *("code", "kind", "status", "means", "why", "do", "example", "documented"),
    }
    every = json.loads(shell.ok("explain", "-o", "json"))["items"]
    assert [it["code"] for it in every] == [it.code for it in catalog()]
    same = json.loads(shell.ok("explain", "Suspended", "-o", "json"))["items"]
    assert len(same) == 3  # of a job, a cron job and an array
    assert shell.ok("explain", "-o", "name").split() == [it.code for it in catalog()]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("CrashBudgetExausted", "did you mean CrashBudgetExhausted"),
        ("4711", "asyncjob explain lists all"),
    ],
)
def test_an_unknown_code_is_a_usage_error_with_near_ones(
    shell: Shell, asked: str, said: str
) -> None:
    result = shell("explain", asked)
    assert result.exit_code == 2
    assert said in result.stderr


def test_codes_are_completed_in_any_case() -> None:
    found = [line.partition("\t")[0] for line in kubectl_completions(root, ["explain", "crashb"])]
    assert found == ["CrashBudgetExhausted", ":4"]


def test_it_is_part_of_the_kubectl_plugin(shell: Shell) -> None:
    assert "kubectl asyncjob explain" in shell("explain", "4711", name="kubectl asyncjob").stderr


def test_it_needs_neither_cluster_nor_configuration() -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-m", "asyncjob.cli", "explain", "no-such-code"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr[:6]) == (2, "error:")
    done = subprocess.run(
        [sys.executable, "-m", "asyncjob.cli", "explain", "history.grows"],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("history.grows")
