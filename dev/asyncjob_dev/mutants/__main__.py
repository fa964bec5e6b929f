"""`python -m asyncjob_dev.mutants`: try mutants of the pure code, and compare with the list."""

import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from asyncjob_dev.mutants.forks import Verdict
from asyncjob_dev.mutants.mutations import Mutant, mutants
from asyncjob_dev.mutants.record import Outcome, Record
from asyncjob_dev.mutants.suite import warm_up
from asyncjob_dev.mutants.survivors import (
    LIST,
    Survivor,
    entry_for,
    outdated,
    read_survivors,
    read_tested_from_afar,
)
from asyncjob_dev.mutants.trials import (
    REACH_OF_OWN_TESTS,
    all_tests,
    measure_reach,
    own_tests,
    try_by_import,
    try_in_functions,
)
from asyncjob_dev.signals import click_errors

ROOT: Final = Path.cwd()
FOLDERS: Final = ("sdk/src/asyncjob/lifecycle", "operator/src/asyncjob_operator/core")
LEAST_KILLED: Final = 0.95
LEAST_KILLED_BY_OWN_TESTS: Final = 0.7
"""Of the mutants in a module's functions, by the tests that import from it themselves."""

SMALL_MINUTES: Final = 1.0
_SEED_BITS: Final = 32
_SHARE_IN_FUNCTIONS: Final = 0.6
"""Of the time. The others are an eighth of all mutants, and each takes five times as long."""

_FOR_EVER: Final = 1e6
"""Minutes."""


def all_mutants(root: Path) -> list[Mutant]:
    """Return every mutant of the pure code."""
    files = [file for folder in FOLDERS for file in sorted((root / folder).rglob("*.py"))]
    return [mutant for file in files for mutant in mutants(root, str(file.relative_to(root)))]


@click.command()
@click.option("--module", default="", help="Only modules whose path has one of these in it.")
@click.option("--minutes", type=float, help="Begin none after so long; which are tried is random.")
@click.option("--seed", type=int, help="Repeat the choice of a run that printed it.")
@click.option("--jobs", type=int, default=1, show_default=True, help="How many at a time.")
@click.option("--small", is_flag=True, help="Random modules, each on its own tests, for a minute.")
@click.option("--again", is_flag=True, help="Go on: leave out what was killed as the code is now.")
def main(
    *, module: str, minutes: float | None, seed: int | None, jobs: int, small: bool, again: bool
) -> None:
    """Change the pure code in one place at a time, and demand that a test fails."""
    with click_errors():
        seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        click.echo(f"seed: {seed}")
        known, listed = all_mutants(ROOT), read_survivors(ROOT / LIST)
        if gone := outdated(listed, known):
            raise click.ClickException(f"no longer there, but in {LIST}: {gone[0]} ({len(gone)})")
        chosen = [m for m in known if any(part in m.module for part in module.split(","))]
        if not chosen:
            raise click.ClickException(f"no module in {' or '.join(FOLDERS)} has {module} in it")
        if small:
            _try_on_own_tests(chosen, listed, seed, jobs, 60 * (minutes or SMALL_MINUTES))
            return
        record = Record(ROOT, known)
        before = {m: o for m, o in record.outcomes.items() if again and m in set(chosen)}
        left = [m for m in chosen if m not in before or before[m].verdict is Verdict.SURVIVED]
        # What was never tried comes first: a survivor takes longest.
        random.Random(seed).shuffle(left)
        left.sort(key=before.__contains__)
        warm_up()
        new = _try(record, known, left, jobs, 60 * (minutes or _FOR_EVER))
        _judge(before | new, len(chosen), {entry.key for entry in listed})


def _try(
    record: Record, known: Sequence[Mutant], chosen: Sequence[Mutant], jobs: int, seconds: float
) -> dict[Mutant, Outcome]:
    modules = sorted({mutant.module for mutant in known})
    reach = measure_reach(ROOT, modules, all_tests(ROOT))
    click.echo(f"{len(reach.seconds)} tests, {len(chosen)} of {len(known)} mutants")
    began = time.monotonic()

    def go_on(share: float) -> bool:
        return time.monotonic() < began + share * seconds

    outcomes: dict[Mutant, Outcome] = {}

    def note(mutant: Mutant, outcome: Outcome) -> None:
        outcomes[mutant] = outcome
        record.note(mutant, outcome)
        if outcome.verdict is Verdict.SURVIVED:
            click.echo(f"survived: {mutant}")

    by_import = [mutant for mutant in chosen if not mutant.function]
    inside = [mutant for mutant in chosen if mutant.function]
    for mutant, outcome in try_in_functions(
        ROOT, inside, reach, jobs, lambda: go_on(_SHARE_IN_FUNCTIONS if by_import else 1.0)
    ):
        imported = reach.at_import(mutant.module, mutant.first_line, mutant.last_line)
        if outcome.verdict is Verdict.SURVIVED and imported:
            by_import.append(mutant)
        else:
            note(mutant, outcome)
    for mutant, outcome in try_by_import(ROOT, by_import, reach, jobs, lambda: go_on(1.0)):
        note(mutant, outcome)
    return outcomes


def _try_on_own_tests(
    known: Sequence[Mutant], listed: Sequence[Survivor], seed: int, jobs: int, seconds: float
) -> None:
    """Try one module after the other, in random order, each on the tests that import from it.

    Which other tests reach a module takes minutes to find out. Its own have to notice most mutants.
    """
    left_out = read_tested_from_afar(ROOT / LIST)
    named = {mutant.module for mutant in known} - left_out
    modules = sorted(module for module in named if own_tests(ROOT, module))
    random.Random(seed).shuffle(modules)
    equal = {entry.key for entry in listed}
    warm_up()
    began, wrong = time.monotonic(), 0
    for number, module in enumerate(modules):
        if number and time.monotonic() > began + seconds:
            break
        tests = own_tests(ROOT, module)
        # What is kept says only what the tests reach of the module before.
        (ROOT / REACH_OF_OWN_TESTS).unlink(missing_ok=True)
        reach = measure_reach(ROOT, [module], tests, REACH_OF_OWN_TESTS)
        inside = [m for m in known if m.module == module and m.function and m.key not in equal]
        tried = dict(try_in_functions(ROOT, inside, reach, jobs, _always, tests=tests))
        killed = sum(one.verdict is Verdict.KILLED for one in tried.values())
        share = killed / len(tried) if tried else 1.0
        enough = share >= LEAST_KILLED_BY_OWN_TESTS
        wrong += not enough
        click.echo(f"{killed:5} of {len(tried):5} killed  {module}{'' if enough else '  TOO FEW'}")
    if wrong:
        least = f"{LEAST_KILLED_BY_OWN_TESTS:.0%}"
        raise click.ClickException(f"{wrong} have fewer than {least} killed by their own tests")


def _always() -> bool:
    return True


def _judge(
    outcomes: dict[Mutant, Outcome], chosen: int, listed: set[tuple[str, str, str, str, int]]
) -> None:
    """Print the score, and fail if something survived that is not on the list."""
    survived = [one for one, outcome in outcomes.items() if outcome.verdict is Verdict.SURVIVED]
    tried, lost = Counter(m.module for m in outcomes), Counter(m.module for m in survived)
    for module in sorted(tried):
        killed = tried[module] - lost[module]
        click.echo(f"{killed:5} of {tried[module]:5} killed  {module}")
    share = 1 - len(survived) / max(len(outcomes), 1)
    click.echo(f"{len(outcomes)} of {chosen} tried, {share:.1%} killed")
    for mutant, outcome in outcomes.items():
        if mutant.key in listed and outcome.verdict is Verdict.KILLED:
            click.echo(f"killed now, take it off {LIST}: {mutant}")
    if fresh := [mutant for mutant in survived if mutant.key not in listed]:
        click.echo(f"{len(fresh)} survived that are not in {LIST}. Write a test, or an entry:")
        for mutant in fresh:
            click.echo(f"\n{entry_for(mutant)}")
        sys.exit(1)
    if not outcomes:
        raise click.ClickException("none was tried")
    if share < LEAST_KILLED:
        raise click.ClickException(f"less than {LEAST_KILLED:.0%} killed")


if __name__ == "__main__":
    main()
