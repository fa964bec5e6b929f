"""`watch`: jobs as they change; a live table for people, lines for all else."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import click

from asyncjob.cli.changes import LiveJobs
from asyncjob.cli.filters import with_selection
from asyncjob.cli.job_rows import job_table
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import NameParam
from asyncjob.cli.place import ConnectionOptions, with_all_namespaces
from asyncjob.cli.screen import OutputFormat, Printer, dump, to_json_line, with_printer
from asyncjob.cli.tables import Table, render_lines
from asyncjob.cli.world import CliContext
from asyncjob.rest.job import JobSummary
from asyncjob.rest.selection import Selection

INITIAL_JOBS = 50
"""Jobs shown before anything has changed, the newest."""


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, type=NameParam(), metavar="[JOB...]")
@with_selection()
@click.option("--lines", "as_lines", is_flag=True, help="Lines, even on a terminal.")
@click.option("--only-changes", is_flag=True, help="Nothing of what there is already.")
@with_printer(OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.JSON, OutputFormat.NAME)
@with_all_namespaces
@click.pass_obj
def watch(
    cli: CliContext,
    *,
    names: Sequence[str],
    selection: Selection,
    as_lines: bool,
    only_changes: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> None:
    """Follow jobs as they change, until Ctrl-C.

    On a terminal a table that is kept up to date; else a line for each change, and with
    `-o json` an object in a line each.
    """
    with cli.lister(connection) as jobs:
        first = () if only_changes else tuple(islice(jobs.list(selection), INITIAL_JOBS))
        seen = _JobStream(
            _only_named(reversed(first), names), _only_named(jobs.watch(selection), names)
        )
        if printer.terminal and printer.human_readable and not as_lines:
            _print_live(seen, cli, connection, printer)
        else:
            _print_changes(chain(seen.existing, seen.changes), cli, connection, printer)


def _only_named(jobs: Iterable[JobSummary], names: Sequence[str]) -> Iterator[JobSummary]:
    return (job for job in jobs if not names or job.id in names)


@dataclass(frozen=True)
class _JobStream:
    """The jobs there are, and the changes that come."""

    existing: Iterator[JobSummary]
    changes: Iterator[JobSummary]


def _print_live(
    stream: _JobStream, cli: CliContext, connection: ConnectionOptions, printer: Printer
) -> None:
    from asyncjob.cli.live import LiveTable

    changes = LiveJobs()

    def draw() -> tuple[str, Table]:
        table = job_table(
            changes.newest(), cli.now(), wide=printer.wide, everywhere=connection.everywhere
        )
        return f"{cli.now():%H:%M:%S}Z  {changes.phase_summary()}", table

    for job in stream.existing:
        changes.update(job)
    with LiveTable(printer, draw):
        for job in stream.changes:
            changes.update(job)


def _print_changes(
    jobs: Iterable[JobSummary], cli: CliContext, connection: ConnectionOptions, printer: Printer
) -> None:
    show = _change_printer(cli, connection, printer)
    for job in jobs:
        show(job)


def _change_printer(
    cli: CliContext, connection: ConnectionOptions, printer: Printer
) -> Callable[[JobSummary], None]:
    if printer.format is OutputFormat.JSON:
        return _print_json_line
    if printer.format is OutputFormat.NAME:
        return lambda job: printer.line(job.id)
    return _RowPrinter(cli, connection, printer).print_row


def _print_json_line(job: JobSummary) -> None:
    click.echo(to_json_line(dump(job)))


class _RowPrinter:
    """Rows one by one, under each other for as long as they fit."""

    def __init__(self, cli: CliContext, connection: ConnectionOptions, printer: Printer) -> None:
        self._cli, self._connection, self._printer = cli, connection, replace(printer, width=None)
        self._widths: list[int] = []

    def print_row(self, job: JobSummary) -> None:
        wide = self._printer.wide
        table = job_table(
            [job],
            self._cli.now(),
            wide=wide,
            everywhere=self._connection.everywhere,
            min_widths=self._widths,
        )
        drawn = render_lines(table, colour=self._printer.colour, with_headings=not self._widths)
        self._widths = table.widths()[:-1]
        for line in drawn:
            self._printer.line(line)
