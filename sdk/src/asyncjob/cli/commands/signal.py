"""`signal`: tells a job something that its handler waits for."""

from collections.abc import Sequence

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.input.documents import parse_payload
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.output.printer import Printer, note, with_printer
from asyncjob.lifecycle.waits import WaitKind


@click.command(cls=SectionedCommand, context_settings={"ignore_unknown_options": True})
@click.argument("job", type=NameParam(), metavar="JOB")
@click.argument("name", metavar="NAME")
@click.argument("payload", nargs=-1, metavar="[KEY=VALUE | KEY:=JSON | JSON]...")
@with_printer()
@with_connection
@click.pass_obj
def signal(
    cli: CliContext,
    *,
    job: str,
    name: str,
    payload: Sequence[str],
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Send a job a signal, in your own name: `asyncjob signal release-42 approval ok:=true`.

    It is sent once for each name, and never changed. A signal of another name than the job waits
    for is kept for later, and stderr says which it waits for.
    """
    try:
        value = parse_payload(payload) if payload else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="payload") from error
    with cli.connect(connection) as jobs:
        told = jobs.signal(job, name, value)
    printer.outcomes([told], lambda one: f"{one.id} has been sent {name}")
    awaited = [one.key for one in told.waiting if one.kind == WaitKind.SIGNAL]
    if awaited and name not in awaited:
        note(f"note: {told.id} waits for {', '.join(awaited)}, and keeps {name} for later")
    return 0
