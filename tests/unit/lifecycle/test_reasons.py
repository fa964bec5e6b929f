"""Nothing that has to know every reason of a phase has forgotten one."""

import re
from pathlib import Path

import pytest

from asyncjob.lifecycle.phases import REASON_DOCS, Phase, Reason
from asyncjob.lifecycle.transitions import TRANSITIONS, Actor
from support import checker

TROUBLESHOOTING = Path(__file__).parents[3] / "docs/how-to/troubleshoot.md"


def reasons_to(phase: Phase) -> set[str]:
    return {reason.value for one in TRANSITIONS if one.target is phase for reason in one.reasons}


def explained_reasons() -> set[str]:
    """Return what stands in the first cells of the rows of the troubleshooting page."""
    page = TROUBLESHOOTING.read_text(encoding="utf-8")
    cells = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_described_and_given_by_somebody(reason: Reason) -> None:
    assert REASON_DOCS[reason]
    assert [one for one in TRANSITIONS if reason in one.reasons]


@pytest.mark.parametrize("reason", Reason)
def test_the_troubleshooting_page_says_what_to_do_about_each_reason(reason: Reason) -> None:
    assert reason.value in explained_reasons()


@pytest.mark.parametrize("phase", Phase)
def test_the_independent_checker_knows_the_reasons_for_which_a_job_comes_to_a_phase(
    phase: Phase,
) -> None:
    assert checker.REASONS.get(phase.value, set()) == reasons_to(phase)


def test_the_independent_checker_knows_the_reasons_that_only_a_holder_has() -> None:
    by_actor = {
        actor: {
            reason.value
            for one in TRANSITIONS
            if one.source is Phase.RUNNING
            for reason in one.reasons_by_actor.get(actor, ())
        }
        for actor in Actor
    }
    assert by_actor[Actor.WORKER] - by_actor[Actor.OPERATOR] == checker.HOLDER_REASONS


def test_the_independent_checker_finds_a_reason_that_leads_elsewhere() -> None:
    was = {"phase": "Queued"}
    now = {"phase": "Pending", "reason": "QueueTimeout", "history": [{}]}
    assert [*checker._move(was, now)] == ["Pending for the reason QueueTimeout"]
