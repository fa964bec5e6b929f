"""`make simulate` fails where what has to happen sometimes never did, and names the seed first."""

from collections import Counter
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result

from asyncjob_simulation import __main__ as command
from asyncjob_simulation.invariants import BrokenInvariant
from asyncjob_simulation.life import Options, Outcome
from asyncjob_simulation.profiles import Profile

NEVER = "lost answer adopted"


def run(
    monkeypatch: pytest.MonkeyPatch,
    lives: int,
    counts: Counter[str],
    violations: Sequence[BrokenInvariant] = (),
    profile: Profile | None = None,
) -> Result:
    def simulate(seed: int, options: Options) -> Outcome:
        return Outcome(seed, violations, "", counts, {}, (), 1.0, 1, options.profile)

    monkeypatch.setattr(command, "prepare_process", lambda: None)
    monkeypatch.setattr(command, "simulate", simulate)
    chosen = [] if profile is None else ["--profile", profile.value]
    words = ["--seed", "7", "--lives", str(lives), "--no-story", *chosen]
    return CliRunner().invoke(command.main, words)


def test_what_never_happened_in_many_simulations_fails_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = Counter(dict.fromkeys((what for one in Profile for what in command.SOMETIMES[one]), 1))
    assert run(monkeypatch, command.ENOUGH_LIVES, counts).exit_code == 0
    del counts[NEVER]
    assert run(monkeypatch, command.ENOUGH_LIVES - 1, counts).exit_code == 0
    result = run(monkeypatch, command.ENOUGH_LIVES, counts)
    assert result.exit_code == 1
    assert f"never happened: {command.SOMETIMES[Profile.JOBS][NEVER]}" in result.output


def test_a_seed_that_fails_ends_the_command_with_what_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = BrokenInvariant("every accepted job ends", "x", "Running at the end")
    result = run(monkeypatch, 3, Counter(), [broken])
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == "first seed: 7"
    assert "again: make simulate SEED=7 PROFILE=jobs" in result.output


@pytest.mark.parametrize("profile", Profile)
def test_what_repeats_a_seed_is_taken_as_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    result = run(monkeypatch, 1, Counter(), profile=profile)
    assert result.exit_code == 0
    assert f"{profile}: 1 simulations" in result.output
    assert result.output.count(" simulations\n") == 1
