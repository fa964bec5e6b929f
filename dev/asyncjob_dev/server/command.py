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

from asyncjob import errors
from asyncjob_dev.errors import DevError
from asyncjob_dev.options import PORT, QUEUES, SLOTS, WORKERS
from asyncjob_dev.platforms import platform_name

BUILT_IN_APP = "asyncjob_worker.builtin:app"
UNTRIED = "asyncjob dev has not been tried on this system; Linux is where it is tested."
INTERRUPTED = 130


@click.command()
@click.argument("app", default=BUILT_IN_APP, metavar="[MODULE:APP]")
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
    MODULE:APP, which are imported from this folder; by default the built-in handlers. Nothing of it
    runs in a cluster of yours, and nothing is left running.
    """
    with _errors_as_sentences():
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


@contextmanager
def _errors_as_sentences() -> Iterator[None]:
    try:
        yield
    except DevError as error:
        raise click.ClickException(explained(error)) from error
    except KeyboardInterrupt:
        click.echo("\ninterrupted; nothing that it started is left running", err=True)
        sys.exit(INTERRUPTED)
