"""What keeps an export or a restore from being done at all."""

from typing import Any

import click

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.tables import one_line


class FileFailedError(click.ClickException):
    """A file cannot be read or written."""

    exit_code = ExitCode.FAILED

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - as click calls it
        """Say so."""
        click.echo(f"error: {one_line(self.message)}", err=True)


class TooDeepError(FileFailedError):
    """An object is nested so deeply that it could not be written as it is."""

    def __init__(self, namespace: str, name: str) -> None:
        super().__init__(
            f"{namespace}/{name} is nested too deeply to be exported: delete it, or export other"
            " queues (--queue)"
        )


class BrokenExportError(click.ClickException):
    """The file is no export, or not a whole one; nothing was created."""

    exit_code = ExitCode.USAGE

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - as click calls it
        """Say so, a line for each mistake."""
        for line in self.message.splitlines():
            click.echo(f"error: {one_line(line)}", err=True)
        click.echo("nothing was restored", err=True)


def file_error(name: str, error: OSError) -> FileFailedError:
    """Return what the system's refusal means."""
    return FileFailedError(f"{name}: {error.strerror or error}")
