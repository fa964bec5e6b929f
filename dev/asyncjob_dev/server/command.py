"""The command `asyncjob dev`, which the command line finds by an entry point.

What it runs is imported once it is known that this system can run it.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from asyncjob import errors
from asyncjob.cli.exit_codes import ExitCode
from asyncjob_dev.errors import (
    DevError,
    FolderUnusableError,
    HandlersNotLoadedError,
    PortInUseError,
)
from asyncjob_dev.options import PORT, QUEUES, SLOTS, WORKERS
from asyncjob_dev.platforms import platform_name

BUILT_IN_APP = "asyncjob_worker.builtin:app"
UNTRIED = "asyncjob dev has not been tried on this system; Linux is where it is tested."


@click.command()
@click.argument("app", default=BUILT_IN_APP, metavar="[MODULE[:APP]]")
@QUEUES
@click.option("--workers", type=WORKERS, default=1, show_default=True, help="Of each queue.")
@SLOTS
@click.option(
    "--port",
    "gateway_port",
    type=PORT,
    show_default="8080, or a free one",
    help="Port of the dashboard and the REST API.",
)
@click.option("--api-port", type=PORT, show_default="a free one", help="Port of the API server.")
@click.option(
    "--reload/--no-reload",
    default=True,
    show_default=True,
    help="Start workers again when a Python file below this folder changes.",
)
@click.option("--wipe", is_flag=True, help="Forget the jobs of earlier runs.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".asyncjob"),
    show_default=True,
    help="Where data, logs and kubeconfig go.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Show jobs that succeed, retry, die, outlive their worker, or are refused; then end.",
)
def dev(*, folder: Path, demo: bool, **choices: Any) -> None:
    """Run all that jobs need on this machine, until Ctrl-C.

    A control plane, the operator, the gateway with its dashboard, and workers for the handlers of
    the WorkerApp that MODULE, a module in this folder, has by the name APP; by default `app`.
    Without MODULE the built-in handlers run. Nothing of it runs in a cluster of yours, and nothing
    is left running.
    """
    source = click.get_current_context().get_parameter_source("folder")
    with _errors_as_sentences(folder_is_named=source is not ParameterSource.DEFAULT):
        if not platform_name().startswith("linux"):
            click.echo(UNTRIED, err=True)
        if demo:
            from asyncjob_dev.server.demo import play

            sys.exit(0 if play(folder.absolute()) else 1)
        from asyncjob_dev.server.server import serve

        serve(folder.absolute(), Path.cwd(), choices)


def explained(error: DevError) -> str:
    """Return the error with what explains it: its code, or the one that its log ends with."""
    has_code = re.search(r"\(asyncjob explain [\w.-]+\)\s*$", str(error))
    return str(error) if has_code else errors.explained(str(error), error.code)


class _Failure(click.ClickException):
    """An error that ends the command, told as the command line tells its own."""

    exit_code = ExitCode.FAILED

    def __init__(self, error: DevError) -> None:
        super().__init__(explained(error))

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - as click calls it
        """Say it; the end of a log keeps its lines."""
        click.echo(f"error: {self.message}", err=True)


class _UsageFailure(_Failure):
    """An argument or option is at fault, and nothing was done."""

    exit_code = ExitCode.USAGE


@contextmanager
def _errors_as_sentences(*, folder_is_named: bool) -> Iterator[None]:
    """Turn errors into sentences, and those in an argument or option into wrong usage."""
    try:
        yield
    except (HandlersNotLoadedError, PortInUseError) as error:
        raise _UsageFailure(error) from error
    except FolderUnusableError as error:
        raise (_UsageFailure if folder_is_named else _Failure)(error) from error
    except DevError as error:
        raise _Failure(error) from error
    except KeyboardInterrupt:
        click.echo("\ninterrupted; nothing that it started is left running", err=True)
        sys.exit(ExitCode.INTERRUPTED)
