"""The process: every end of a command is one line on stderr at most, and a documented exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import click

from asyncjob.cli.exit_codes import ExitCode
from asyncjob.cli.root import root
from asyncjob.errors import AsyncJobError

PLUGIN: Final = "kubectl-asyncjob"
DEBUG: Final = "ASYNCJOB_DEBUG"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments, program(sys.argv[0])))


def program(path: str) -> str:
    """Return how whoever called us would write it."""
    return "kubectl asyncjob" if PurePath(path).stem == PLUGIN else "asyncjob"


def run(arguments: Sequence[str] | None, name: str) -> int:
    """Run the command line and return its exit code."""
    try:
        code = root.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.UsageError as error:
        return _misused(error, name)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AsyncJobError as error:
        return _tell(error, name)
    except Exception as error:  # noqa: BLE001 - people are shown no traceback unless they ask for it
        return _unexpected(error)
    return code if isinstance(code, int) else ExitCode.OK


def _unexpected(error: Exception) -> int:
    if os.environ.get(DEBUG):
        raise error
    what = " ".join(f"{type(error).__name__}: {error}".split())
    click.echo(f"error: {what} (this should not happen; {DEBUG}=1 shows where)", err=True)
    return ExitCode.FAILED


def _misused(error: click.UsageError, name: str) -> int:
    called = error.ctx.command_path if error.ctx else name
    message = error.format_message().rstrip(".").replace("\n", " ")
    click.echo(f"error: {message} ({called} --help)", err=True)
    return ExitCode.USAGE


def _tell(error: AsyncJobError, name: str) -> int:
    from asyncjob.cli.failures import exit_code, sentence

    click.echo(f"error: {sentence(error, name)}", err=True)
    return exit_code(error)
