"""The group of all commands about arrays."""

import click

from asyncjob.cli.command_classes import SectionedGroup
from asyncjob.cli.commands.array.control import cancel, redrive, resume, suspend
from asyncjob.cli.commands.array.read import get, items, list_, results
from asyncjob.cli.commands.array.submit import submit
from asyncjob.cli.commands.array.wait import wait


@click.group(cls=SectionedGroup)
def array() -> None:
    """Submit, show and control arrays (AsyncArrays): one handler over many items."""


for _command in (submit, get, list_, items, results, wait, redrive, cancel, suspend, resume):
    array.add_command(_command)
