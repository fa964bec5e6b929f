"""Nothing that has to know every reason of a phase has forgotten one."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from asyncjob.audit.job_rules import LEGAL_TRANSITIONS, REPORTED
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.transitions import TRANSITIONS, Actor
from asyncjob_dev.proofs.rules.state_promises import REASONS_BY_PHASE
from asyncjob_dev.proofs.rules.step_promises import REASONS_OF_HOLDERS

ROOT = Path(__file__).parents[3]
TROUBLESHOOTING = ROOT / "docs/how-to/troubleshoot.md"
RUNBOOK = ROOT / "docs/runbooks/AsyncJobDeadLettersGrowing.md"

DECIDING = (
    "sdk/src/asyncjob/app",
    "sdk/src/asyncjob/lifecycle",
    "operator/src/asyncjob_operator/core",
    "worker-image/src/asyncjob_worker",
)
"""Folders of the code that decides for which reason a job changes its phase."""

DECLARING = ("phases.py", "transitions.py")


def reasons_to(phase: Phase) -> set[str]:
    return {reason.value for one in TRANSITIONS if one.target is phase for reason in one.reasons}


def explained_reasons(section: str) -> set[str]:
    """Return what stands in the first cells of the rows of a section."""
    text = TROUBLESHOOTING.read_text(encoding="utf-8")
    _, *parts = re.split(r"^##+ (.+)\n", text, flags=re.MULTILINE)
    by_title = dict(zip(parts[::2], parts[1::2], strict=True))
    cells = re.findall(r"^\| ([^|]+) \|", by_title[section], re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@cache
def given_reasons() -> frozenset[str]:
    """Return the members of `Reason` that the code names, other than to compare with them."""
    files = (file for folder in DECIDING for file in (ROOT / folder).rglob("*.py"))
    trees = (ast.parse(file.read_text("utf-8")) for file in files if file.name not in DECLARING)
    return frozenset(name for tree in trees for name in reasons_in(tree))


def reasons_in(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare():
            return
        case ast.Attribute(value=ast.Name("Reason"), attr=name):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from reasons_in(child)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_given_by_somebody(reason: Reason) -> None:
    assert [one for one in TRANSITIONS if reason in one.reasons]


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_given_by_some_code(reason: Reason) -> None:
    assert reason.name in given_reasons()


@pytest.mark.parametrize("phase", [phase for phase in Phase if reasons_to(phase)])
def test_the_troubleshooting_page_explains_each_reason_where_it_is_looked_for(phase: Phase) -> None:
    assert reasons_to(phase) - explained_reasons(phase.value) == set()


def test_the_runbook_for_dead_letters_names_each_of_their_reasons() -> None:
    assert reasons_to(Phase.DEAD_LETTER) - set(re.findall(r"`(\w+)`", RUNBOOK.read_text())) == set()


@pytest.mark.parametrize("phase", Phase)
def test_the_audit_knows_the_reasons_for_which_a_job_comes_to_a_phase(phase: Phase) -> None:
    known = {reason for targets in LEGAL_TRANSITIONS.values() for reason in targets.get(phase, ())}
    assert known - {""} == reasons_to(phase)


def test_the_audit_knows_the_reasons_that_only_a_holder_has() -> None:
    by_actor = {
        actor: {
            reason.value
            for one in TRANSITIONS
            if one.source is Phase.RUNNING
            for reason in one.reasons_by_actor.get(actor, ())
        }
        for actor in Actor
    }
    assert by_actor[Actor.WORKER] - by_actor[Actor.OPERATOR] == REPORTED


@pytest.mark.parametrize("phase", Phase)
def test_the_proofs_know_the_reasons_of_each_phase(phase: Phase) -> None:
    assert {reason.value for reason in REASONS_BY_PHASE[phase]} == reasons_to(phase)


def test_the_proofs_know_the_reasons_that_only_a_holder_has() -> None:
    assert {reason.value for reason in REASONS_OF_HOLDERS} == REPORTED
