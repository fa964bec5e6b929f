"""`workers`: lists the live workers."""

from functools import partial

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces
from asyncjob.cli.context import CliContext
from asyncjob.cli.input.resource_names import complete_queue_names
from asyncjob.cli.output.printer import Printer, with_printer
from asyncjob.cli.output.resource_tables import worker_table


@click.command(cls=SectionedCommand)
@click.option(
    "--queue",
    "-q",
    metavar="QUEUE",
    help="Only workers of this queue.",
    shell_complete=complete_queue_names,
)
@click.option("--type", "kind", metavar="TYPE", help="Only workers with a handler for it.")
@with_printer()
@with_all_namespaces
@click.pass_obj
def workers(
    cli: CliContext,
    *,
    queue: str | None,
    kind: str | None,
    connection: ConnectionOptions,
    printer: Printer,
) -> None:
    """List the live workers with queue, slots, running jobs and handler types."""
    with cli.lister(connection) as jobs:
        found = [
            one
            for one in jobs.workers()
            if queue in {None, one.queue} and (kind is None or kind in one.types)
        ]
    draw = partial(worker_table, now=cli.now(), everywhere=connection.everywhere)
    none = "no live workers" + (" match" if queue or kind else ": no job will start")
    printer.listing(found, draw, otherwise=none)
