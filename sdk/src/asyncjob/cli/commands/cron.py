"""`cron list|get|trigger|suspend|resume|backfill`."""

from functools import partial

import click

from asyncjob.cli.command_classes import SectionedGroup
from asyncjob.cli.commands.wait import WaitOptions, wait_for_jobs
from asyncjob.cli.connection import ConnectionOptions, with_all_namespaces, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import TimeParam
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.input import resource_names
from asyncjob.cli.input.resource_names import NameParam, current_program
from asyncjob.cli.output.detail import RenderContext, cron_job_detail
from asyncjob.cli.output.printer import OutputFormat, Printer, note, with_printer
from asyncjob.cli.output.resource_tables import cron_job_table
from asyncjob.models.cron import MAX_ACTIVE_RUNS, MAX_RUNS

CREATION_GRACE_SECONDS = 30.0
"""Seconds within which the operator creates the job of a trigger."""

NAME_ARGUMENT = click.argument(
    "name", type=NameParam(resource_names.cron_job_names), metavar="NAME"
)


@click.group(cls=SectionedGroup)
def cron() -> None:
    """Show and control cron jobs (AsyncCronJobs)."""


@cron.command("list")
@with_printer()
@with_all_namespaces
@click.pass_obj
def list_(cli: CliContext, *, connection: ConnectionOptions, printer: Printer) -> None:
    """List cron jobs with their next run and latest activity."""
    with cli.lister(connection) as jobs:
        found = jobs.cron_jobs()
    draw = partial(cron_job_table, now=cli.now(), everywhere=connection.everywhere)
    printer.listing(found, draw, otherwise="no cron jobs here")


@cron.command()
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def get(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Show one cron job in detail."""
    with cli.connect(connection) as jobs:
        found = jobs.cron_job(name)
    if printer.format is OutputFormat.TABLE:
        for line in cron_job_detail(
            found, RenderContext(cli.now(), current_program(), printer.colour, printer.width)
        ):
            printer.line(line)
    elif printer.human_readable:
        printer.table(cron_job_table([found], cli.now()))
    else:
        printer.objects([found], one=True)


@cron.command()
@NAME_ARGUMENT
@click.option("--wait", is_flag=True, help="Wait until the run has finished.")
@with_printer()
@with_connection
@click.pass_obj
def trigger(
    cli: CliContext, *, name: str, wait: bool, connection: ConnectionOptions, printer: Printer
) -> int:
    """Start one run now, independent of the schedule, even if it is suspended."""
    with cli.connect(connection) as jobs:
        made = jobs.trigger(name)
        if wait:
            return wait_for_jobs(
                jobs, cli, WaitOptions([made.id], creation_grace=CREATION_GRACE_SECONDS), printer
            )
    printer.outcomes([made], lambda one: f"{one.id} will run now")
    return ExitCode.OK


@cron.command()
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def suspend(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Keep a cron job from creating jobs; times that pass meanwhile are skipped."""
    with cli.connect(connection) as jobs:
        changed = jobs.suspend_cron_job(name)
        printer.outcomes([changed], lambda done: f"cron job {done.name} suspended")


@cron.command()
@NAME_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def resume(cli: CliContext, *, name: str, connection: ConnectionOptions, printer: Printer) -> None:
    """Let a suspended cron job create jobs again, from its next time on."""
    with cli.connect(connection) as jobs:
        changed = jobs.resume_cron_job(name)
        printer.outcomes([changed], lambda done: f"cron job {done.name} resumed")


@cron.command()
@NAME_ARGUMENT
@click.option("--from", "start", type=TimeParam(), required=True, help="First time: -7d, RFC 3339.")
@click.option("--to", "end", type=TimeParam(), required=True, help="Last time.")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_RUNS),
    default=100,
    show_default=True,
    help="Maximum number of runs; a range with more is rejected.",
)
@click.option(
    "--max-active",
    type=click.IntRange(1, MAX_ACTIVE_RUNS),
    default=1,
    show_default=True,
    help="Maximum number of unfinished runs.",
)
@click.option("--replace", is_flag=True, help="Replace an earlier backfill in progress.")
@with_connection
@click.pass_obj
def backfill(
    cli: CliContext,
    *,
    name: str,
    start: str,
    end: str,
    limit: int,
    max_active: int,
    replace: bool,
    connection: ConnectionOptions,
) -> None:
    """Create the runs of a past range of time, once each."""
    if start >= end:
        raise click.UsageError("--to must be later than --from")
    with cli.connect(connection) as jobs:
        jobs.backfill(name, start, end, limit=limit, max_active=max_active, replace=replace)
    click.echo(f"cron job {name} will create the runs from {start} to {end}")
    note(f"{current_program()} cron get {name} shows the progress")
