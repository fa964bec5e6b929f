"""`watch`: follows jobs as they change, in a live table on a terminal and as lines elsewhere.

The live table keeps a bounded number of jobs.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces
from asyncjob.cli.context import CliContext
from asyncjob.cli.input.filters import with_selection
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.output.job_table import job_table
from asyncjob.cli.output.printer import OutputFormat, Printer, dump, to_json_line, with_printer
from asyncjob.cli.output.tables import Table, render_lines
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import JobSummary
from asyncjob.rest.listing import Selection

INITIAL_JOBS = 50
"""Jobs shown before anything has changed, the newest."""


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, type=NameParam(), metavar="[JOB...]")
@with_selection()
@click.option("--lines", "as_lines", is_flag=True, help="Print lines, even on a terminal.")
@click.option("--only-changes", is_flag=True, help="Do not show jobs that have not changed.")
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

    On a terminal, shows a table and keeps it up to date. Otherwise prints a line for each
    change, with `-o json` a JSON object per line.
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
    from asyncjob.cli.output.live import live_table

    changes = LiveJobs()

    def draw() -> tuple[str, Table]:
        table = job_table(
            changes.newest(), cli.now(), wide=printer.wide, everywhere=connection.everywhere
        )
        return f"{cli.now():%H:%M:%S}Z  {changes.phase_summary()}", table

    for job in stream.existing:
        changes.update(job)
    with live_table(printer, draw):
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


MAX_JOBS = 200
"""Jobs kept in view; what finished longest ago goes first."""


class LiveJobs:
    """Jobs as last seen. A view of a queue that is busy must not grow without end.

    One thread takes while another draws: copies of the dict are made in one step.
    """

    def __init__(self, max_jobs: int = MAX_JOBS) -> None:
        self._max_jobs = max_jobs
        self._jobs: dict[str, JobSummary] = {}

    def update(self, job: JobSummary) -> None:
        """See a job."""
        self._jobs.pop(job.uid, None)
        self._jobs[job.uid] = job
        if len(self._jobs) > self._max_jobs:
            self._evict_one()

    def _evict_one(self) -> None:
        finished = (uid for uid, job in self._jobs.items() if job.finished)
        del self._jobs[next(finished, next(iter(self._jobs)))]

    def newest(self) -> list[JobSummary]:
        """Return the jobs, the newest first; those created at once by name."""
        copied = list(self._jobs.values())
        by_name = sorted(copied, key=lambda job: job.id)
        return sorted(by_name, key=lambda job: job.created_at, reverse=True)

    def phase_summary(self) -> str:
        """Return how many are in which phase."""
        counts = Counter(job.phase for job in list(self._jobs.values()))
        return ", ".join(f"{counts[phase]} {phase.value}" for phase in Phase if counts[phase])
