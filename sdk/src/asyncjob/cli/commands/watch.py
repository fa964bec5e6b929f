"""`watch`: jobs as they change; a live table for people, lines for all else."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import click

from asyncjob.cli.changes import Changes
from asyncjob.cli.filters import filtered
from asyncjob.cli.job_rows import job_table
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import Name
from asyncjob.cli.place import Place, placed_anywhere
from asyncjob.cli.screen import Format, Screen, dump, shown, to_json_line
from asyncjob.cli.tables import Table, lines
from asyncjob.cli.world import World
from asyncjob.rest.job import JobSummary
from asyncjob.rest.selection import Selection

FIRST = 50
"""Jobs shown before anything has changed, the newest."""


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, type=Name(), metavar="[JOB...]")
@filtered()
@click.option("--lines", "as_lines", is_flag=True, help="Lines, even on a terminal.")
@click.option("--only-changes", is_flag=True, help="Nothing of what there is already.")
@shown(Format.TABLE, Format.WIDE, Format.JSON, Format.NAME)
@placed_anywhere
@click.pass_obj
def watch(
    world: World,
    *,
    names: Sequence[str],
    selection: Selection,
    as_lines: bool,
    only_changes: bool,
    place: Place,
    screen: Screen,
) -> None:
    """Follow jobs as they change, until Ctrl-C.

    On a terminal a table that is kept up to date; else a line for each change, and with
    `-o json` an object in a line each.
    """
    with world.overview(place) as jobs:
        first = () if only_changes else tuple(islice(jobs.list(selection), FIRST))
        seen = _Seen(_named(reversed(first), names), _named(jobs.watch(selection), names))
        if screen.terminal and screen.for_people and not as_lines:
            _follow(seen, world, place, screen)
        else:
            _tell(chain(seen.first, seen.then), world, place, screen)


def _named(jobs: Iterable[JobSummary], names: Sequence[str]) -> Iterator[JobSummary]:
    return (job for job in jobs if not names or job.id in names)


@dataclass(frozen=True)
class _Seen:
    """The jobs there are, and the changes that come."""

    first: Iterator[JobSummary]
    then: Iterator[JobSummary]


def _follow(seen: _Seen, world: World, place: Place, screen: Screen) -> None:
    from asyncjob.cli.live import LiveTable

    changes = Changes()

    def draw() -> tuple[str, Table]:
        table = job_table(
            changes.newest(), world.now(), wide=screen.wide, everywhere=place.everywhere
        )
        return f"{world.now():%H:%M:%S}Z  {changes.summary()}", table

    for job in seen.first:
        changes.take(job)
    with LiveTable(screen, draw):
        for job in seen.then:
            changes.take(job)


def _tell(seen: Iterable[JobSummary], world: World, place: Place, screen: Screen) -> None:
    show = _shower(world, place, screen)
    for job in seen:
        show(job)


def _shower(world: World, place: Place, screen: Screen) -> Callable[[JobSummary], None]:
    if screen.format is Format.JSON:
        return _json_line
    if screen.format is Format.NAME:
        return lambda job: screen.line(job.id)
    return _Rows(world, place, screen).show


def _json_line(job: JobSummary) -> None:
    click.echo(to_json_line(dump(job)))


class _Rows:
    """Rows one by one, under each other for as long as they fit."""

    def __init__(self, world: World, place: Place, screen: Screen) -> None:
        self._world, self._place, self._screen = world, place, replace(screen, width=None)
        self._widths: list[int] = []

    def show(self, job: JobSummary) -> None:
        wide = self._screen.wide
        table = job_table(
            [job],
            self._world.now(),
            wide=wide,
            everywhere=self._place.everywhere,
            least=self._widths,
        )
        drawn = lines(table, colour=self._screen.colour, headed=not self._widths)
        self._widths = table.widths()[:-1]
        for line in drawn:
            self._screen.line(line)
