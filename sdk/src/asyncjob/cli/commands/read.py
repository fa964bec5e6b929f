"""`get`, `list`, `history`, `result`: shows jobs."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.error_messages import error_message, exit_code_for
from asyncjob.cli.exit_codes import worst_exit_code
from asyncjob.cli.input.filters import with_selection
from asyncjob.cli.input.resource_names import NameParam, current_program, unique
from asyncjob.cli.output.detail import RenderContext, job_detail
from asyncjob.cli.output.job_table import history_table, job_table
from asyncjob.cli.output.printer import OutputFormat, Printer, note, with_printer
from asyncjob.cli.output.tables import Table, render_lines
from asyncjob.client.errors import NotFoundError
from asyncjob.rest.jobs import Job, JobSummary
from asyncjob.rest.listing import Selection

BLOCK_SIZE = 500
"""Jobs printed at a time, so that a long list begins at once; columns only grow wider."""


@click.command(cls=SectionedCommand)
@click.argument("names", nargs=-1, required=True, type=NameParam(), metavar="JOB...")
@with_printer()
@with_connection
@click.pass_obj
def get(
    cli: CliContext, *, names: Sequence[str], connection: ConnectionOptions, printer: Printer
) -> int:
    """Show jobs in detail: state, history and next steps."""
    failed = []
    with cli.connect(connection) as jobs:
        found = []
        for name in unique(names):
            try:
                found.append(jobs.get(name))
            except NotFoundError as error:
                note(f"error: {error_message(error, current_program())}")
                failed.append(exit_code_for(error))
    _print_jobs(found, cli, printer, one=len(names) == 1)
    return worst_exit_code(failed)


def _print_jobs(found: Sequence[Job], cli: CliContext, printer: Printer, *, one: bool) -> None:
    if printer.format is OutputFormat.WIDE:
        printer.table(job_table(found, cli.now(), wide=True))
    elif printer.human_readable:
        _print_details(
            found,
            RenderContext(cli.now(), current_program(), printer.colour, printer.width),
            printer,
        )
    elif found or not one:
        printer.objects(found, one=one)


def _print_details(found: Sequence[Job], context: RenderContext, printer: Printer) -> None:
    for number, job in enumerate(found):
        if number:
            printer.line()
        for line in job_detail(job, context):
            printer.line(line)


@click.command("list", cls=SectionedCommand)
@with_selection()
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of jobs, the newest.")
@with_printer()
@with_all_namespaces
@click.pass_obj
def list_(
    cli: CliContext,
    *,
    selection: Selection,
    limit: int | None,
    connection: ConnectionOptions,
    printer: Printer,
) -> None:
    """List jobs, newest first, with the reason of their phase."""
    with cli.lister(connection) as jobs:
        found = islice(jobs.list(selection), limit)
        if printer.human_readable:
            if not _print_blocks(found, cli, connection, printer):
                note(no_jobs_message(selection))
        elif printer.format is OutputFormat.NAME:
            printer.names(job.id for job in found)
        else:
            printer.objects(list(found))


def no_jobs_message(selection: Selection) -> str:
    """Return what is said in place of an empty table."""
    filters = selection.model_dump(exclude_none=True)
    return "no jobs match" if filters else "no jobs here"


def _print_blocks(
    found: Iterable[JobSummary], cli: CliContext, connection: ConnectionOptions, printer: Printer
) -> int:
    table, count = None, 0
    for block in _blocks(found):
        least = table.widths()[:-1] if table else ()
        table = job_table(
            block, cli.now(), wide=printer.wide, everywhere=connection.everywhere, min_widths=least
        )
        _print_table(table, printer, with_headings=not count)
        count += len(block)
    return count


def _print_table(table: Table, printer: Printer, *, with_headings: bool) -> None:
    for line in render_lines(
        table, colour=printer.colour, width=printer.width, with_headings=with_headings
    ):
        printer.line(line)


def _blocks(found: Iterable[JobSummary]) -> Iterator[list[JobSummary]]:
    rest = iter(found)
    while block := list(islice(rest, BLOCK_SIZE)):
        yield block


@click.command(cls=SectionedCommand)
@click.argument("name", type=NameParam(), metavar="JOB")
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
@with_connection
@click.pass_obj
def history(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Show what happened to a job, oldest first, its creation included.

    What its handler logged is in the log of its worker, and that is kubectl's: `kubectl logs POD`.
    """
    with cli.connect(connection) as jobs:
        found = jobs.history(name)
    if printer.human_readable:
        printer.table(history_table(found))
    else:
        printer.objects(found)


@click.command(cls=SectionedCommand)
@click.argument("name", type=NameParam(), metavar="JOB")
@with_printer(OutputFormat.JSON, OutputFormat.YAML)
@with_connection
@click.pass_obj
def result(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Print the result of a job.

    Exit code 3 if the job has no result (yet). If a large result is kept in a store, the message
    names its address.
    """
    with cli.connect(connection) as jobs:
        printer.data(jobs.result(name))
