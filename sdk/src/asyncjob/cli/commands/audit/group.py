"""The group of both commands."""

import click

from asyncjob.cli.command_classes import SectionedGroup
from asyncjob.cli.commands.audit.check import check
from asyncjob.cli.commands.audit.record import record


@click.group(cls=SectionedGroup)
def audit() -> None:
    """Record what happens to jobs, and judge it."""


audit.add_command(record)
audit.add_command(check)
