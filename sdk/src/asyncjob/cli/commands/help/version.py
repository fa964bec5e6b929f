"""`version`."""

import click

from asyncjob import __version__
from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.input.resource_names import current_program
from asyncjob.cli.output.printer import OutputFormat, Printer, with_printer
from asyncjob.names import API_VERSION


@click.command(cls=SectionedCommand)
@with_printer(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
def version(*, printer: Printer) -> None:
    """Print the version, and that of the API it speaks."""
    if printer.human_readable:
        printer.line(f"{current_program()} {__version__} ({API_VERSION})")
    else:
        printer.data({"version": __version__, "apiVersion": API_VERSION})
