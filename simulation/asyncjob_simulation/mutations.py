"""Bugs planted in the product, one at a time: each has to be found by simulating.

A search that finds none of them says nothing about the ones that are there.
"""

import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from asyncjob_simulation import (  # noqa: F401  # they add to the list
    planted_arrays,
    planted_children,
    planted_operator,
    planted_waits,
    planted_worker,
)
from asyncjob_simulation.apiserver.installation import ROOT
from asyncjob_simulation.life import Options, prepare_process, simulate
from asyncjob_simulation.planting import MUTATIONS, Mutation
from asyncjob_simulation.profiles import Profile


@dataclass(frozen=True)
class Found:
    """Where a search has found a bug; `seed` is None if it has not."""

    mutation: Mutation
    seed: int | None
    simulations: int
    seconds: float
    promise: str = ""


def by_name(name: str) -> Mutation:
    """Return a mutation; raises BadParameter."""
    found = next((one for one in MUTATIONS if one.name == name), None)
    if found is None:
        listed = ", ".join(one.name for one in MUTATIONS)
        raise click.BadParameter(f"no bug is called {name!r}; there are: {listed}")
    return found


def search(mutation: Mutation, first_seed: int, seconds: float) -> Found:
    """Simulate seed after seed with a bug until a promise is broken, for so much CPU time.

    A seed that fails without the bug as well has not found it.
    """
    began, tried = time.process_time(), 0
    options = Options(profile=mutation.profile)
    while time.process_time() - began < seconds:
        with mutation.plant():
            outcome = simulate(first_seed + tried, options)
        tried += 1
        if outcome.violations:
            elapsed = time.process_time() - began
            if not simulate(outcome.seed, options).violations:
                promise = outcome.violations[0].promise
                return Found(mutation, outcome.seed, tried, elapsed, promise)
            click.echo(f"seed {outcome.seed} fails without any bug planted")
    return Found(mutation, None, tried, time.process_time() - began)


# ---- the table

PAGE: Final = ROOT / "docs" / "explanation" / "simulation.md"
APART: Final = 1_000_000
"""How far apart the first seeds of two searches are."""

_HEAD: Final = "| Planted | Once found by | Simulations until found | CPU seconds | Broken |"


def write_row(mutation: Mutation, found: Sequence[Found]) -> None:
    """Put what was found into the table of the page, in the order of profiles and mutations."""
    before, _, rest = PAGE.read_text().partition(_HEAD)
    rows, after = [], rest.split("\n")[2:]
    while after and after[0].startswith("|"):
        rows.append(after.pop(0))
    by_words = {row.split("|")[1].strip(): row for row in rows}
    by_words[mutation.words] = _row(mutation, found)
    in_order = sorted(MUTATIONS, key=lambda one: list(Profile).index(one.profile))
    known = [by_words[one.words] for one in in_order if one.words in by_words]
    line = "|" + "---|" * 5
    PAGE.write_text("\n".join([f"{before}{_HEAD}", line, *known, *after]))


def _row(mutation: Mutation, found: Sequence[Found]) -> str:
    tries = ", ".join(f"{'' if one.promise else 'not in '}{one.simulations}" for one in found)
    seconds = ", ".join(f"{one.seconds:.0f}" for one in found)
    broken = "; ".join(dict.fromkeys(one.promise for one in found if one.promise))
    cells = (mutation.words, mutation.origin, tries, seconds, broken or "nothing")
    return f"| {' | '.join(cells)} |"


def _not_found(mutation: Mutation) -> str:
    return f"not found here, but by {mutation.found_by}" if mutation.found_by else "NOT FOUND"


# ---- the command


@click.command()
@click.option("--seed", type=int, help="The first seed of each search; a fresh one by default.")
@click.option("--searches", type=int, default=2, show_default=True, help="For each bug.")
@click.option(
    "--minutes", type=float, default=10.0, show_default=True, help="CPU, for each search."
)
@click.option("--write", is_flag=True, help=f"Write what was found into {PAGE.name}.")
@click.argument("names", nargs=-1)
def main(
    *, seed: int | None, searches: int, minutes: float, write: bool, names: tuple[str, ...]
) -> None:
    """Plant each bug, or those of NAMES, and search for it; exit 1 if one is not found.

    Those that another kind of search finds may be missed.
    """
    first = secrets.randbits(32) if seed is None else seed
    click.echo(f"first seed: {first}")
    prepare_process()
    wanted = list(map(by_name, names)) or MUTATIONS
    missed = 0
    for one in wanted:
        found = [search(one, first + number * APART, 60 * minutes) for number in range(searches)]
        missed += any(each.seed is None for each in found) and not one.found_by
        for each in found:
            where = (
                f"seed {each.seed}: {each.promise}" if each.seed is not None else _not_found(one)
            )
            tried = f"{each.simulations:5} simulations {each.seconds:7.1f} s"
            click.echo(f"{one.name:28} {tried}  {where}")
        if write:
            write_row(one, found)
    click.echo(f"{len(wanted) - missed} of {len(wanted)} found by each search, or by another kind")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
