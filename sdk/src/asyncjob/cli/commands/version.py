"""`version`."""

import click

from asyncjob import __version__
from asyncjob.cli.lazy import SectionedCommand
from asyncjob.cli.naming import program
from asyncjob.cli.screen import Format, Screen, shown
from asyncjob.names import API_VERSION


@click.command(cls=SectionedCommand)
@shown(Format.TABLE, Format.JSON, Format.YAML)
def version(*, screen: Screen) -> None:
    """Print the version, and that of the API it speaks."""
    if screen.for_people:
        screen.line(f"{program()} {__version__} ({API_VERSION})")
    else:
        screen.data({"version": __version__, "apiVersion": API_VERSION})
