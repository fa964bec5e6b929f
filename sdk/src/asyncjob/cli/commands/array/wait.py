"""`array wait`: polls an array until it has ended, and shows how far it is.

On a terminal as a bar, elsewhere as a line for each percent.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import click

from asyncjob.cli.command_classes import SectionedCommand
from asyncjob.cli.connection import ConnectionOptions, with_connection
from asyncjob.cli.context import CliContext
from asyncjob.cli.durations import DurationParam, precise_duration
from asyncjob.cli.error_messages import error_message
from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.input import resource_names
from asyncjob.cli.input.resource_names import NameParam, current_program
from asyncjob.cli.output.array_tables import array_table, progress_line
from asyncjob.cli.output.printer import Printer, note, with_printer
from asyncjob.client.api import Jobs
from asyncjob.client.errors import ArrayGoneError, ArrayNotFoundError
from asyncjob.errors import AsyncJobError, explain_command
from asyncjob.lifecycle.arrays.phases import ArrayPhase, ArrayReason
from asyncjob.rest.arrays import ArrayInfo

POLL_SECONDS: Final = 2
"""As the clients do: an array changes twice a second, and a look reads all its inline items."""

NAME_ARGUMENT = click.argument("name", type=NameParam(resource_names.array_names), metavar="ARRAY")

_PHASE_EXIT_CODES: Final = {
    ArrayPhase.SUCCEEDED: ExitCode.OK,
    ArrayPhase.FAILED: ExitCode.DEAD_LETTER,
    ArrayPhase.CANCELLED: ExitCode.CANCELLED,
}


@click.command(cls=SectionedCommand)
@NAME_ARGUMENT
@click.option(
    "--timeout", type=DurationParam(), default="1h", show_default=True, help="0: check once."
)
@click.option("--quiet", is_flag=True, help="Do not show the progress on stderr.")
@with_printer()
@with_connection
@click.pass_obj
def wait(
    cli: CliContext,
    *,
    name: str,
    timeout: int,
    quiet: bool,
    connection: ConnectionOptions,
    printer: Printer,
) -> int:
    """Wait until an array has ended; the exit code reports how.

    \b
    0  it succeeded
    3  it does not exist, or was deleted
    4  it failed
    5  it was cancelled
    6  timed out
    """  # noqa: D301 - click takes a real backspace for "do not wrap"
    with cli.connect(connection) as jobs:
        return wait_for_array(jobs, cli, ArrayWait(name, timeout, quiet), printer)


@dataclass(frozen=True, slots=True)
class ArrayWait:
    """What to wait for, in seconds."""

    name: str
    timeout: float = 3600
    quiet: bool = False


def wait_for_array(jobs: Jobs, cli: CliContext, request: ArrayWait, printer: Printer) -> ExitCode:
    """Wait, show the array as it is then, and return the exit code."""
    start, waiter = cli.monotonic(), _ArrayWaiter(jobs, request.name)
    with _progress(cli, quiet=request.quiet) as shown:
        while not waiter.poll(shown) and (left := request.timeout - cli.monotonic() + start) > 0:
            cli.sleep(min(POLL_SECONDS, left))
    array = waiter.latest
    if array is None or not array.finished:
        how = progress_line(array, cli.now()) if array else f"state of {request.name} unknown"
        late = f"not ended within {precise_duration(request.timeout)}: {how}"
        note(f"error: {late} (longer: --timeout; {explain_command('wait-timeout')})")
    if array and (printer.human_readable or array.finished):
        _print_end(array, cli, printer)
    return _PHASE_EXIT_CODES[array.phase] if array and array.finished else ExitCode.TIMEOUT


def _print_end(array: ArrayInfo, cli: CliContext, printer: Printer) -> None:
    if not printer.human_readable:
        printer.objects([array], one=True)
        return
    printer.table(array_table([array], cli.now()))
    if array.failed and array.finished:
        note(f"{current_program()} array items {array.name} --failed shows what failed")


@dataclass(slots=True)
class _ArrayWaiter:
    """The array that is waited for, as last seen."""

    jobs: Jobs
    name: str
    latest: ArrayInfo | None = None
    last_error: str = ""

    def poll(self, shown: "_Progress") -> bool:
        """Look at it; return whether it has ended."""
        try:
            array = self.jobs.array(self.name)
        except ArrayNotFoundError as error:
            if self.latest is None:
                raise
            raise ArrayGoneError(f"array {self.name} was deleted meanwhile") from error
        except AsyncJobError as error:
            self._on_error(error, shown)
            return False
        if self.latest and self.latest.uid != array.uid:
            raise ArrayGoneError(f"array {self.name} was deleted, and another has its name")
        self.latest, self.last_error = array, ""
        shown.show(array)
        return array.finished

    def _on_error(self, error: AsyncJobError, shown: "_Progress") -> None:
        """Wait on while a server is away; raise what will not pass."""
        if not error.retryable:
            raise error
        if str(error) != self.last_error:
            self.last_error = str(error)
            shown.message(f"{error_message(error, current_program())}; still waiting")


class _Progress(Protocol):
    """How to show how far an array is."""

    def show(self, array: ArrayInfo) -> None:
        """Show it."""

    def message(self, text: str) -> None:
        """Say something beside it."""


@contextmanager
def _progress(cli: CliContext, *, quiet: bool) -> Iterator[_Progress]:
    if quiet or not sys.stderr.isatty():
        yield _ProgressLines(cli, quiet)
        return
    from asyncjob.cli.output.live import array_bar

    with array_bar(cli.now) as bar:
        yield bar


@dataclass(slots=True)
class _ProgressLines:
    """A line whenever phase, percent or what it waits for have changed: some hundred at most."""

    cli: CliContext
    quiet: bool
    last: tuple[object, ...] = ()

    def show(self, array: ArrayInfo) -> None:
        """Print a line if there is something new."""
        tells = array.phase is ArrayPhase.PENDING or array.reason == ArrayReason.NO_WORKER
        waits = array.message if tells else None
        asked = (array.suspended, array.cancelling, array.redriving)
        new = (array.phase, array.percent, waits, *asked)
        if new != self.last and not self.quiet:
            note(progress_line(array, self.cli.now()))
        self.last = new

    def message(self, text: str) -> None:
        """Print it."""
        note(text)
