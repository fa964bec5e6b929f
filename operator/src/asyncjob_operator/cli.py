"""`asyncjob-operator`: the command line. Each option has an environment variable of its own."""

import sys
from enum import IntEnum
from typing import Any

import click
import uvloop

from asyncjob.errors import AsyncJobError, message_of
from asyncjob.logs import LogFormat
from asyncjob.programs.options import with_options
from asyncjob_operator.kopf_handlers import run_operator
from asyncjob_operator.options import (
    CONNECTION_OPTIONS,
    LOGGING_OPTIONS,
    RUN_OPTIONS,
    settings_from,
)
from asyncjob_operator.process import check as look_for_problems
from asyncjob_operator.telemetry.logs import configure_operator_logs


class OperatorExitCode(IntEnum):
    """How the operator ends; `asyncjob explain` says more of each."""

    OK = 0
    FAILED = 1
    USAGE = 2
    """Given by click."""


@click.group()
@click.version_option(package_name="asyncjob-operator")
def main() -> None:
    """Operate AsyncJobs: promotion, recovery, deadlines, cancellation, retention."""


@main.command()
@with_options(CONNECTION_OPTIONS, RUN_OPTIONS, LOGGING_OPTIONS)
def run(*, log_format: LogFormat, log_level: str, **given: Any) -> None:
    """Run until SIGTERM. While something is missing, say so once a minute and wait."""
    configure_operator_logs(log_format, log_level)
    try:
        uvloop.run(run_operator(settings_from(given)))
    except AsyncJobError as error:
        raise click.ClickException(message_of(error)) from error


@main.command()
@with_options(CONNECTION_OPTIONS)
def check(**given: Any) -> None:
    """Say what keeps the operator from working, or jobs from being guarded; exit 1 if any."""
    try:
        findings = uvloop.run(look_for_problems(settings_from(given)))
    except AsyncJobError as error:
        raise click.ClickException(message_of(error)) from error
    for line in findings.warnings:
        click.echo(f"warning: {line}", err=True)
    errors = [*findings.errors, *findings.missing_policies]
    for line in errors:
        click.echo(f"error: {line}", err=True)
    if errors:
        sys.exit(OperatorExitCode.FAILED)
    click.echo("the operator can work")
