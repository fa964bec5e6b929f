"""The process: every end of a command is one line on stderr at most, and a documented exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import click

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.root import root
from asyncjob.cli.tables import one_line
from asyncjob.cli.world import World
from asyncjob.errors import AsyncJobError
from asyncjob.interrupts import heed_interrupts

PLUGIN: Final = "kubectl-asyncjob"
DEBUG: Final = "ASYNCJOB_DEBUG"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    heed_interrupts()
    sys.exit(run(arguments, program(sys.argv[0])))


def program(path: str) -> str:
    """Return how whoever called us would write it."""
    return "kubectl asyncjob" if PurePath(path).stem == PLUGIN else "asyncjob"


def run(arguments: Sequence[str] | None, name: str, world: World | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = root.main(arguments, prog_name=name, standalone_mode=False, obj=world)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        return _unread(error)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - people are shown no traceback
        return _ended(error, name)
    return code if isinstance(code, int) else ExitCode.OK


def _unread(error: BaseException) -> int:
    """End in silence: whoever read us has enough. Python must not complain when it flushes."""
    if not isinstance(error, BrokenPipeError) and not isinstance(
        error.__context__, BrokenPipeError
    ):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return ExitCode.OK


def _ended(error: BaseException, name: str) -> int:
    match error:
        case click.Abort() | KeyboardInterrupt():
            click.echo("interrupted", err=True)
            return ExitCode.INTERRUPTED
        case click.UsageError():
            return _misused(error, name)
        case click.ClickException():
            error.show()
            return error.exit_code
        case AsyncJobError():
            return _tell(error, name)
        case _:
            return _unexpected(error)


def _unexpected(error: BaseException) -> int:
    if os.environ.get(DEBUG):
        raise error
    what = one_line(f"{type(error).__name__}: {error}")
    click.echo(f"error: {what} (this should not happen; {DEBUG}=1 shows where)", err=True)
    return ExitCode.FAILED


def _misused(error: click.UsageError, name: str) -> int:
    called = error.ctx.command_path if error.ctx else name
    message = one_line(error.format_message().rstrip("."))
    click.echo(f"error: {message} ({called} --help)", err=True)
    return ExitCode.USAGE


def _tell(error: AsyncJobError, name: str) -> int:
    from asyncjob.cli.failures import exit_code, sentence

    click.echo(f"error: {sentence(error, name)}", err=True)
    return exit_code(error)
