"""`array cancel`, `array suspend`, `array resume`, `array redrive`."""

from collections.abc import Callable, Sequence

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.commands.array.wait import ArrayWait, wait_for_array
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.error_messages import for_each
from asyncjob.cli.exit_codes import ExitCode, worst_exit_code
from asyncjob.cli.input import resource_names
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.output.printer import Printer, with_printer
from asyncjob.client.api import Jobs
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.rest.arrays import ArrayInfo

NAMES_ARGUMENT = click.argument(
    "names",
    nargs=-1,
    required=True,
    type=NameParam(resource_names.array_names),
    metavar="ARRAY...",
)
Ask = Callable[[str], ArrayInfo]


@click.command(cls=SectionedCommand)
@NAMES_ARGUMENT
@click.option("--wait", is_flag=True, help="Wait until the arrays are cancelled.")
@with_printer()
@with_connection
@click.pass_obj
def cancel(
    cli: CliContext,
    *,
    names: Sequence[str],
    wait: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Cancel arrays and their chunks. What is done stays counted; this cannot be undone."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.cancel_array)
        if wait and changed:
            ended = _wait_for(jobs, cli, changed, printer)
            # To be cancelled is what was asked for.
            return (ExitCode.OK if ended is ExitCode.CANCELLED else ended) or code
    printer.outcomes(changed, _cancel_outcome)
    return code


def _cancel_outcome(array: ArrayInfo) -> str:
    done = array.phase is ArrayPhase.CANCELLED
    return f"array {array.name} {'cancelled' if done else 'being cancelled'}"


@click.command(cls=SectionedCommand)
@NAMES_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def suspend(
    cli: CliContext, *, names: Sequence[str], connection: ConnectionOptions, printer: Printer
) -> int:
    """Keep arrays from beginning further chunks; chunks that run continue."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.suspend_array)
    printer.outcomes(changed, lambda one: _unless_ended(one, "suspended"))
    return code


@click.command(cls=SectionedCommand)
@NAMES_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def resume(
    cli: CliContext, *, names: Sequence[str], connection: ConnectionOptions, printer: Printer
) -> int:
    """Let suspended arrays go on."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.resume_array)
    printer.outcomes(changed, lambda one: _unless_ended(one, "resumed"))
    return code


def _unless_ended(array: ArrayInfo, done: str) -> str:
    if array.finished:
        return f"array {array.name} has ended ({array.phase}): nothing changes"
    return f"array {array.name} {done}"


@click.command(cls=SectionedCommand)
@NAMES_ARGUMENT
@click.option("--wait", is_flag=True, help="Wait until the arrays have ended again.")
@with_printer()
@with_connection
@click.pass_obj
def redrive(
    cli: CliContext,
    *,
    names: Sequence[str],
    wait: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Run the failed items of failed arrays again, and after them those never run."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.redrive_array)
        if wait and changed:
            return _wait_for(jobs, cli, changed, printer) or code
    printer.outcomes(changed, lambda one: f"array {one.name} being redriven")
    return code


def _wait_for(
    jobs: Jobs, cli: CliContext, arrays: Sequence[ArrayInfo], printer: Printer
) -> ExitCode:
    return worst_exit_code(
        [wait_for_array(jobs, cli, ArrayWait(one.name), printer) for one in arrays]
    )
