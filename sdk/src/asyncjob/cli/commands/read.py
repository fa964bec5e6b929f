"""`get`, `list`, `history`, `result`: jobs as they are."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import click

from asyncjob.cli.exit_codes import worst
from asyncjob.cli.failures import exit_code, sentence
from asyncjob.cli.filters import filtered
from asyncjob.cli.job_rows import job_table
from asyncjob.cli.job_sheet import Look, sheet
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import Name, distinct, program
from asyncjob.cli.place import Place, placed, placed_anywhere
from asyncjob.cli.screen import Format, Screen, note, shown
from asyncjob.cli.tables import Table, lines
from asyncjob.cli.timeline import timeline
from asyncjob.cli.world import World
from asyncjob.client.errors import NotFoundError
from asyncjob.rest.job import Job, JobSummary
from asyncjob.rest.selection import Selection

BLOCK = 500
"""Jobs printed at a time, so that a long list begins at once; columns only grow wider."""


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, required=True, type=Name(), metavar="JOB...")
@shown()
@placed
@click.pass_obj
def get(world: World, *, names: Sequence[str], place: Place, screen: Screen) -> int:
    """Show jobs with all that is known of them: how they stand, what happened, what to do next."""
    failed = []
    with world.connect(place) as jobs:
        found = []
        for name in distinct(names):
            try:
                found.append(jobs.get(name))
            except NotFoundError as error:
                note(f"error: {sentence(error, program())}")
                failed.append(exit_code(error))
    _show(found, world, screen, one=len(names) == 1)
    return worst(failed)


def _show(found: Sequence[Job], world: World, screen: Screen, *, one: bool) -> None:
    if screen.format is Format.WIDE:
        screen.table(job_table(found, world.now(), wide=True))
    elif screen.for_people:
        _sheets(found, Look(world.now(), program(), screen.colour, screen.width), screen)
    elif found or not one:
        screen.answers(found, one=one)


def _sheets(found: Sequence[Job], look: Look, screen: Screen) -> None:
    for number, job in enumerate(found):
        if number:
            screen.line()
        for line in sheet(job, look):
            screen.line(line)


@click.command("list", cls=SectionedCommand)
@filtered()
@click.option("--limit", type=click.IntRange(min=1), help="Show so many, the newest.")
@shown()
@placed_anywhere
@click.pass_obj
def list_(
    world: World, *, selection: Selection, limit: int | None, place: Place, screen: Screen
) -> None:
    """List jobs, newest first, with why each is where it is."""
    with world.overview(place) as jobs:
        found = islice(jobs.list(selection), limit)
        if screen.for_people:
            if not _print_blocks(found, world, place, screen):
                note(nothing(selection))
        elif screen.format is Format.NAME:
            screen.names(job.id for job in found)
        else:
            screen.answers(list(found))


def nothing(selection: Selection) -> str:
    """Return what is said in place of an empty table."""
    filters = selection.model_dump(exclude_none=True)
    return "no jobs match" if filters else "no jobs here"


def _print_blocks(found: Iterable[JobSummary], world: World, place: Place, screen: Screen) -> int:
    table, count = None, 0
    for block in _blocks(found):
        least = table.widths()[:-1] if table else ()
        table = job_table(
            block, world.now(), wide=screen.wide, everywhere=place.everywhere, least=least
        )
        _print(table, screen, headed=not count)
        count += len(block)
    return count


def _print(table: Table, screen: Screen, *, headed: bool) -> None:
    for line in lines(table, colour=screen.colour, width=screen.width, headed=headed):
        screen.line(line)


def _blocks(found: Iterable[JobSummary]) -> Iterator[list[JobSummary]]:
    rest = iter(found)
    while block := list(islice(rest, BLOCK)):
        yield block


@click.command(cls=SectionedCommand)
@click.argument("name", type=Name(), metavar="JOB")
@shown(Format.TABLE, Format.JSON, Format.YAML)
@placed
@click.pass_obj
def history(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Show what happened to a job, oldest first, its creation included.

    What its handler logged is in the log of its worker, and that is kubectl's: `kubectl logs POD`.
    """
    with world.connect(place) as jobs:
        found = jobs.history(name)
    if screen.for_people:
        screen.table(timeline(found))
    else:
        screen.answers(found)


@click.command(cls=SectionedCommand)
@click.argument("name", type=Name(), metavar="JOB")
@shown(Format.JSON, Format.YAML)
@placed
@click.pass_obj
def result(world: World, *, name: str, place: Place, screen: Screen) -> None:
    """Print what a job's handler returned.

    Exit code 3 if there is nothing (yet). A large result lies in a store; the message says where.
    """
    with world.connect(place) as jobs:
        screen.data(jobs.result(name))
