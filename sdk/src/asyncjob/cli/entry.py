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
from asyncjob.cli.world import CliContext
from asyncjob.errors import AsyncJobError
from asyncjob.interrupts import restore_sigint

KUBECTL_PLUGIN: Final = "kubectl-asyncjob"
DEBUG_VARIABLE: Final = "ASYNCJOB_DEBUG"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    restore_sigint()
    sys.exit(run(arguments, program_name(sys.argv[0])))


def program_name(path: str) -> str:
    """Return how whoever called us would write it."""
    return "kubectl asyncjob" if PurePath(path).stem == KUBECTL_PLUGIN else "asyncjob"


def run(arguments: Sequence[str] | None, name: str, cli: CliContext | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = root.main(arguments, prog_name=name, standalone_mode=False, obj=cli)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        return _end_for_closed_pipe(error)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - people are shown no traceback
        return _report_error(error, name)
    return code if isinstance(code, int) else ExitCode.OK


def _end_for_closed_pipe(error: BaseException) -> int:
    """End in silence: whoever read us has enough. Python must not complain when it flushes."""
    if not isinstance(error, BrokenPipeError) and not isinstance(
        error.__context__, BrokenPipeError
    ):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return ExitCode.OK


def _report_error(error: BaseException, name: str) -> int:
    match error:
        case click.Abort() | KeyboardInterrupt():
            click.echo("interrupted", err=True)
            return ExitCode.INTERRUPTED
        case click.UsageError():
            return _report_usage_error(error, name)
        case click.ClickException():
            error.show()
            return error.exit_code
        case AsyncJobError():
            return _report_known_error(error, name)
        case _:
            return _report_unexpected_error(error)


def _report_unexpected_error(error: BaseException) -> int:
    if os.environ.get(DEBUG_VARIABLE):
        raise error
    what = one_line(f"{type(error).__name__}: {error}")
    click.echo(f"error: {what} (this should not happen; {DEBUG_VARIABLE}=1 shows where)", err=True)
    return ExitCode.FAILED


def _report_usage_error(error: click.UsageError, name: str) -> int:
    called = error.ctx.command_path if error.ctx else name
    message = one_line(error.format_message().rstrip("."))
    click.echo(f"error: {message} ({called} --help)", err=True)
    return ExitCode.USAGE


def _report_known_error(error: AsyncJobError, name: str) -> int:
    from asyncjob.cli.failures import error_message, exit_code_for

    click.echo(f"error: {error_message(error, name)}", err=True)
    return exit_code_for(error)
