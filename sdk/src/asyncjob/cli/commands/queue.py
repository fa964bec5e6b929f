"""`queue list|get|pause|resume|top`."""

from collections.abc import Callable, Sequence
from functools import partial

import click

from asyncjob.cli.command_classes import SectionedGroup
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import DurationParam
from asyncjob.cli.input import resource_names
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.output.printer import Printer, with_printer
from asyncjob.cli.output.resource_tables import queue_table
from asyncjob.cli.output.tables import Table
from asyncjob.rest.resources import QueueInfo

NO_QUEUES = "no queues: no AsyncQueue, no jobs and no workers found"
NAME_ARGUMENT = click.argument("name", type=NameParam(resource_names.queue_names), metavar="QUEUE")


@click.group(cls=SectionedGroup)
def queue() -> None:
    """Show queues, pause and resume them."""


@queue.command("list")
@with_printer()
@with_all_namespaces
@click.pass_obj
def list_(cli: CliContext, *, connection: ConnectionOptions, printer: Printer) -> None:
    """List queues: those with an AsyncQueue, and those that have jobs or workers."""
    with cli.lister(connection) as jobs:
        found = jobs.queues()
    _print_queues(found, connection, printer)


def _print_queues(
    found: Sequence[QueueInfo], connection: ConnectionOptions, printer: Printer
) -> None:
    draw = partial(queue_table, everywhere=connection.everywhere)
    printer.listing(found, draw, otherwise=NO_QUEUES)


@queue.command()
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def get(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Show one queue."""
    with cli.connect(connection) as jobs:
        printer.listing([jobs.queue(name)], queue_table, otherwise=NO_QUEUES, one=True)


@queue.command()
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def pause(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Keep the queue's jobs from starting; running jobs continue.

    The queue is drained once none of its jobs is running. Creates the AsyncQueue if there is
    none.
    """
    with cli.connect(connection) as jobs:
        printer.outcomes([jobs.pause(name)], lambda done: f"queue {done.name} paused")


@queue.command()
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def resume(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Let the jobs of a paused queue start."""
    with cli.connect(connection) as jobs:
        printer.outcomes([jobs.resume_queue(name)], lambda done: f"queue {done.name} resumed")


@queue.command()
@click.option(
    "--every", type=DurationParam(), default="2s", show_default=True, help="Refresh interval."
)
@click.option("--once", is_flag=True, help="Print once, as without a terminal.")
@with_printer()
@with_all_namespaces
@click.pass_obj
def top(
    cli: CliContext, *, every: int, once: bool, connection: ConnectionOptions, printer: Printer
) -> None:
    """Follow the queues: jobs by phase, oldest, workers, slots, finished per minute."""
    with cli.lister(connection) as jobs:
        if once or not (printer.terminal and printer.human_readable):
            _print_queues(jobs.queues(), connection, printer)
        else:
            _print_live(jobs.queues, cli, connection, printer, every)


def _print_live(
    fetch: Callable[[], Sequence[QueueInfo]],
    cli: CliContext,
    connection: ConnectionOptions,
    printer: Printer,
    every: int,
) -> None:
    from asyncjob.cli.output.live import live_table

    now = fetch()

    def draw() -> tuple[str, Table]:
        return f"{cli.now():%H:%M:%S}Z", queue_table(now, everywhere=connection.everywhere)

    with live_table(printer, draw):
        while True:
            cli.sleep(every)
            now = fetch()
