"""`python -m asyncjob_dev.proofs`: what `make prove` runs; it ends with 1 if anything is broken."""

import sys
import time
from itertools import chain

import click

from asyncjob_dev.errors import DevError
from asyncjob_dev.proofs import short_model
from asyncjob_dev.proofs.protocol.search import search
from asyncjob_dev.proofs.protocol.state import World
from asyncjob_dev.proofs.protocol.worlds import LONG_WORLDS, TWINS, WORLDS
from asyncjob_dev.proofs.rules.induction import (
    NOT_TRANSLATED,
    SymbolicRules,
    prove_creation,
    prove_first_question,
    prove_steps,
)
from asyncjob_dev.proofs.rules.need import find_steps, needed_rules, write_file
from asyncjob_dev.proofs.rules.state_promises import STATES
from asyncjob_dev.proofs.rules.step_promises import STEPS

PARTS = ("model", "rules", "protocol")
NAMES = [world.name for world in (*WORLDS, *LONG_WORLDS, *TWINS.values())]


@click.command()
@click.option("--only", type=click.Choice(PARTS), help="One part instead of all.")
@click.option("--long", "is_long", is_flag=True, help="Search the large worlds as well.")
@click.option(
    "--world", "names", type=click.Choice(NAMES), multiple=True, help="Search these worlds only."
)
@click.option("--write", is_flag=True, help="Store the steps that each rule alone refuses.")
def main(only: str | None, names: tuple[str, ...], *, is_long: bool, write: bool) -> None:
    """Prove what can be proven of jobs, and say what that was."""
    parts = (only,) if only else PARTS
    try:
        if "model" in parts:
            _check_model()
        if "rules" in parts:
            _prove_rules(write=write)
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


def _prove_rules(*, write: bool) -> None:
    click.echo("\nThe rules of the API server keep each promise, whatever is written\n")
    symbolic = SymbolicRules.build()
    for theorem in chain((prove_creation(), prove_first_question(symbolic)), prove_steps(symbolic)):
        click.echo(f"  {theorem.seconds:5.1f} s  {theorem.sentence}")
    click.echo(f"\n{len(STATES)} promises about states and {len(STEPS)} about steps are proven.")
    click.echo("\nWithout any one rule a promise is broken\n")
    needed = 0
    for needed, (rule, seconds) in enumerate(needed_rules(symbolic), 1):  # noqa: B007  # counts
        click.echo(f"  {seconds:5.1f} s  {rule}")
    click.echo(f"\n{needed} rules, each of them needed. Not translated: {NOT_TRANSLATED}.")
    if write:
        write_file(find_steps(symbolic))


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
        click.echo(f"without {precaution} {result.finding}\n")


def _search(world: World) -> None:
    result = search(world)
    counts = f"{result.states} states, {result.steps} steps, {result.seconds:.0f} s"
    click.echo(f"  {world.title}: {counts}")
    if result.finding is not None:
        raise click.ClickException(str(result.finding))


if __name__ == "__main__":
    main()
