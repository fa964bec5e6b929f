"""`cancel`, `suspend`, `resume`, `priority`, `rerun`: requests about existing jobs."""

from collections.abc import Sequence

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.commands.wait import WaitOptions, wait_for_jobs
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.error_messages import for_each
from asyncjob.cli.input.resource_names import NameParam
from asyncjob.cli.output.printer import Printer, with_printer
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.jobs import Job

CREATION_GRACE_SECONDS = 30.0
"""Seconds within which the operator creates what is asked for."""

JOBS_ARGUMENT = click.argument("names", nargs=-1, required=True, type=NameParam(), metavar="JOB...")


@click.command(cls=SectionedCommand)
@JOBS_ARGUMENT
@click.option("--cascade", is_flag=True, help="Also cancel unfinished children and dependents.")
@click.option("--wait", is_flag=True, help="Wait until the jobs are cancelled.")
@with_printer()
@with_connection
@click.pass_obj
def cancel(
    cli: CliContext,
    *,
    names: Sequence[str],
    cascade: bool,
    wait: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Cancel jobs; a dead letter is dismissed.

    A running handler is asked to stop, and ended after its grace period. This cannot be undone.
    """
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, lambda name: jobs.cancel(name, cascade=cascade))
        if wait and changed:
            request = WaitOptions([job.id for job in changed], Phase.CANCELLED)
            return wait_for_jobs(jobs, cli, request, printer) or code
    printer.outcomes(changed, lambda job: f"{job.id} {cancel_outcome(job)}")
    return code


def cancel_outcome(job: Job) -> str:
    """Return how far the cancellation is."""
    if job.phase is Phase.CANCELLED:
        return "cancelled"
    return "being dismissed" if job.phase is Phase.DEAD_LETTER else "being cancelled"


@click.command(cls=SectionedCommand)
@JOBS_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def suspend(
    cli: CliContext, *, names: Sequence[str], connection: ConnectionOptions, printer: Printer
) -> int:
    """Keep jobs from being started; a running attempt continues."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.suspend)
    printer.outcomes(changed, lambda job: f"{job.id} suspended")
    return code


@click.command(cls=SectionedCommand)
@JOBS_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def resume(
    cli: CliContext, *, names: Sequence[str], connection: ConnectionOptions, printer: Printer
) -> int:
    """Let suspended jobs start."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.resume)
    printer.outcomes(changed, lambda job: f"{job.id} {resume_outcome(job)}")
    return code


def resume_outcome(job: Job) -> str:
    """Return what the resume has come to: nothing starts what has finished."""
    return f"has finished ({job.phase}): nothing changes" if job.finished else "resumed"


@click.command(cls=SectionedCommand, context_settings={"ignore_unknown_options": True})
@click.argument("number", type=click.IntRange(-1000, 1000), metavar="NUMBER")
@JOBS_ARGUMENT
@with_printer()
@with_connection
@click.pass_obj
def priority(
    cli: CliContext,
    *,
    number: int,
    names: Sequence[str],
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Set the priority of jobs that are not running: -1000 to 1000, higher starts first."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, lambda name: jobs.set_priority(name, number))
    printer.outcomes(changed, lambda job: f"{job.id} has priority {job.priority}")
    return code


@click.command(cls=SectionedCommand)
@JOBS_ARGUMENT
@click.option("--wait", is_flag=True, help="Wait until the new jobs have finished.")
@with_printer()
@with_connection
@click.pass_obj
def rerun(
    cli: CliContext,
    *,
    names: Sequence[str],
    wait: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Run jobs again: each as a new job, `JOB-r1`, `JOB-r2`, …, linked to the old one."""
    with cli.connect(connection) as jobs:
        changed, code = for_each(names, jobs.rerun)
        if wait and changed:
            request = WaitOptions(
                [one.id for one in changed], creation_grace=CREATION_GRACE_SECONDS
            )
            return wait_for_jobs(jobs, cli, request, printer) or code
    printer.outcomes(changed, lambda one: f"{one.id} will be created")
    return code
