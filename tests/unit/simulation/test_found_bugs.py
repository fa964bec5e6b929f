"""Bugs that simulation has found, or missed while a check was wrong: a seed shows each again."""

import pytest

from asyncjob_simulation.life import Options, simulate
from asyncjob_simulation.mutations import by_name
from asyncjob_simulation.planting import Mutation

FIRST_SEEDS = {
    "any container end": 1_827,
    "forgotten though there": 1_832,
    "created however late": 1_959,
    "execution not limited": 1_812,
    "step taken again": 1_812,
    "woken unseen": 1_812,
    "signal by event": 1_812,
    "late signal taken": 1_001_811,
    "timed out though there": 1_812,
    "counted chunk left": 1_811,
    "innocents fail": 1_812,
    "failed as done": 1_812,
    "woken by any child": 1_811,
    "child ends unseen": 1_811,
    "submitted again": 1_811,
    "late children taken": 1_824,
    "deadline by own clock": 1_811,
}
ALWAYS = {"any container end", "step taken again", "counted chunk left", "submitted again"}
"""One for each profile; `make soak` searches for all."""

ENOUGH = 40
"""Simulations within which it has to be found; a change of any request changes what a seed does."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("name", "first"),
    [
        pytest.param(name, first, marks=() if name in ALWAYS else pytest.mark.soak)
        for name, first in FIRST_SEEDS.items()
    ],
)
def test_a_search_finds_the_bug_again(name: str, first: int) -> None:
    bug = by_name(name)
    with bug.plant():
        shown = next((seed for seed in range(first, first + ENOUGH) if fails(bug, seed)), None)
    assert shown is not None
    assert not fails(bug, shown)


def fails(bug: Mutation, seed: int) -> bool:
    return bool(simulate(seed, Options(profile=bug.profile)).violations)
