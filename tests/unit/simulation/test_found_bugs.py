"""Bugs that simulation has found, or missed while a check was wrong: a seed shows each again."""

import pytest

from asyncjob_simulation.life import simulate
from asyncjob_simulation.mutations import by_name

FIRST_SEEDS = {
    "any container end": 1_825,
    "forgotten though there": 1_823,
    "created however late": 1_950,
}
ENOUGH = 40
"""Simulations within which it has to be found; a change of any request changes what a seed does."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("name", "first"), FIRST_SEEDS.items())
def test_a_search_finds_the_bug_again(name: str, first: int) -> None:
    with by_name(name).plant():
        shown = next((seed for seed in range(first, first + ENOUGH) if fails(seed)), None)
    assert shown is not None
    assert not fails(shown)


def fails(seed: int) -> bool:
    return bool(simulate(seed).violations)
