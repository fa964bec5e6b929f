"""`python -m asyncjob_dev.proofs`: what `make prove` runs; it ends with 1 if anything is broken."""

import sys
import time
from dataclasses import replace
from itertools import chain

import click

from asyncjob_dev.errors import DevError
from asyncjob_dev.proofs import short_model
from asyncjob_dev.proofs.protocol.search import Result, search
from asyncjob_dev.proofs.protocol.state import World
from asyncjob_dev.proofs.protocol.worlds import LONG_WORLDS, TWINS, WORLDS
from asyncjob_dev.proofs.rules.induction import (
    SymbolicRules,
    prove_creation,
    prove_first_question,
    prove_steps,
)
from asyncjob_dev.proofs.rules.kinds import ARRAY, JOB, Kind
from asyncjob_dev.proofs.rules.need import find_steps, needed_rules, write_file

PARTS = ("model", "rules", "protocol")
LONG_LISTS = 20
"""Entries that lists of arrays have at most with `--long`."""
NAMES = [world.name for world in (*WORLDS, *LONG_WORLDS, *TWINS.values())]


@click.command()
@click.option("--only", type=click.Choice(PARTS), help="One part instead of all.")
@click.option(
    "--long",
    "is_long",
    is_flag=True,
    help="Search the large worlds as well, and prove more entries of arrays.",
)
@click.option(
    "--world", "names", type=click.Choice(NAMES), multiple=True, help="Search these worlds only."
)
@click.option("--write", is_flag=True, help="Store the steps that each rule alone refuses.")
def main(only: str | None, names: tuple[str, ...], *, is_long: bool, write: bool) -> None:
    """Prove what can be proven of jobs and arrays, and say what that was."""
    parts = (only,) if only else PARTS
    try:
        if "model" in parts:
            _check_model()
        if "rules" in parts:
            for kind in (JOB, _lengthened(ARRAY) if is_long else ARRAY):
                _prove_rules(kind, write=write)
        if "protocol" in parts:
            _search_worlds(names, is_long=is_long)
    except DevError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"\nall of it holds; {time.process_time():.0f} s of CPU")


def _check_model() -> None:
    click.echo("The short model\n")
    click.echo("\n".join(short_model.report()))
    if not short_model.is_sound():
        sys.exit(1)


def _lengthened(kind: Kind) -> Kind:
    return replace(kind, at_most=dict.fromkeys(kind.at_most, LONG_LISTS))


def _prove_rules(kind: Kind, *, write: bool) -> None:
    bounds = "".join(f"; {name} has at most {most} entries" for name, most in kind.at_most.items())
    click.echo(f"\nThe rules of {kind.name} keep each promise, whatever is written{bounds}\n")
    symbolic = SymbolicRules.build(kind)
    first = [prove_creation(kind)]
    if kind.asks_first:
        first.append(prove_first_question(symbolic))
    for theorem in chain(first, prove_steps(symbolic)):
        click.echo(f"  {theorem.seconds:5.1f} s  {theorem.sentence}")
    states, steps = len(kind.states), len(kind.steps)
    click.echo(f"\n{states} promises about states and {steps} about steps are proven.")
    click.echo("\nWithout any one rule a promise is broken\n")
    needed = 0
    for needed, (rule, seconds) in enumerate(needed_rules(symbolic), 1):  # noqa: B007  # counts
        click.echo(f"  {seconds:5.1f} s  {rule}")
    click.echo(f"\n{needed} rules, each of them needed. Not translated: {kind.untranslated}.")
    if write:
        write_file(kind, find_steps(symbolic))


def _search_worlds(names: tuple[str, ...], *, is_long: bool) -> None:
    click.echo("\nEvery state of the protocol in small worlds, with the project's own functions\n")
    for world in (*WORLDS, *LONG_WORLDS):
        if world.name in names or (not names and (is_long or world in WORLDS)):
            _search(world)
    click.echo("\nWithout a precaution the search finds what it is for\n")
    for precaution, world in TWINS.items():
        if names and world.name not in names:
            continue
        result = search(world)
        if result.finding is None:
            raise click.ClickException(f"nothing is found without {precaution}")
        click.echo(f"without {precaution} {result.finding}\nafter {_counts(result)}\n")


def _search(world: World) -> None:
    result = search(world)
    click.echo(f"  {world.title}: {_counts(result)}")
    if result.finding is not None:
        raise click.ClickException(str(result.finding))


def _counts(result: Result) -> str:
    return f"{result.states} states, {result.steps} steps, {result.seconds:.1f} s"


if __name__ == "__main__":
    main()
