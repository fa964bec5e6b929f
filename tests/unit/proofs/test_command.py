"""`make prove` says what it did, and ends with an error and a story if anything is broken."""

import re
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from asyncjob_dev.proofs import __main__ as command
from asyncjob_dev.proofs import short_model
from asyncjob_dev.proofs.protocol.worlds import TINY, TWINS
from asyncjob_dev.proofs.rules.induction import ProofError, SymbolicRules, Theorem

pytestmark = pytest.mark.timeout(240)


def prove(*args: str) -> Result:
    return CliRunner().invoke(command.main, args)


def test_the_short_model_is_told() -> None:
    result = prove("--only", "model")
    assert result.exit_code == 0, result.output
    assert "every promise kept" in result.output
    assert "without fence it is not true that" in result.output
    assert "all of it holds" in result.output


def test_a_short_model_that_needs_not_all_its_rules_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(short_model.RULES, "idle", lambda _was, _now, _write: True)
    result = prove("--only", "model")
    assert result.exit_code == 1
    assert "without idle: nothing is broken" in result.output
    assert "all of it holds" not in result.output


def test_a_world_is_told_by_its_states() -> None:
    result = prove("--only", "protocol", "--world", "tiny", "--world", "tiny-without-fence")
    assert result.exit_code == 0, result.output
    assert TINY.title in result.output
    assert "without fence it is not true that a fenced attempt" in result.output
    counts = re.findall(r"(?:fault:|\nafter) (\d+) states, \d+ steps, ", result.output)
    all_states, until_found = map(int, counts)
    assert until_found < all_states


def test_a_broken_world_is_an_error_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(TWINS["fence"], name=TINY.name)
    monkeypatch.setattr(command, "WORLDS", (broken,))
    result = prove("--only", "protocol", "--world", "tiny")
    assert result.exit_code == 1
    assert "it is not true that a fenced attempt" in result.output
    assert "  1. " in result.output
    assert "all of it holds" not in result.output


def test_a_precaution_that_nothing_misses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = replace(TINY, name="tiny-without-fence")
    monkeypatch.setattr(command, "TWINS", {"fence": idle})
    result = prove("--only", "protocol", "--world", "tiny-without-fence")
    assert result.exit_code == 1
    assert "nothing is found without fence" in result.output


def test_the_large_worlds_are_searched_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    small, large = replace(TINY, name="small"), replace(TINY, name="large")
    monkeypatch.setattr(command, "WORLDS", (small,))
    monkeypatch.setattr(command, "LONG_WORLDS", (large,))
    monkeypatch.setattr(command, "TWINS", {})
    monkeypatch.setattr(command, "_search", lambda world: searched.append(world.name))
    assert prove("--only", "protocol").exit_code == 0
    assert prove("--only", "protocol", "--long").exit_code == 0
    assert searched == ["small", "small", "large"]


def test_a_promise_that_is_not_kept_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    theorem = Theorem("created", "It is so.", 0.1)

    def broken(_rules: Any) -> Any:
        yield theorem
        raise ProofError("attempt is not kept by a write of the status")

    monkeypatch.setattr(command, "prove_creation", lambda _kind: theorem)
    monkeypatch.setattr(command, "prove_first_question", lambda _rules: theorem)
    monkeypatch.setattr(command, "prove_steps", broken)
    monkeypatch.setattr(SymbolicRules, "build", lambda _kind: None)
    result = prove("--only", "rules")
    assert result.exit_code == 1
    assert "It is so." in result.output
    assert "attempt is not kept by a write of the status" in result.output
