"""`python -m asyncjob_dev`: the commands behind `make up`, `make down` and `make demo`."""

import re
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from asyncjob.names import DEFAULT_QUEUE
from asyncjob_dev.demo import run_demo
from asyncjob_dev.environment import EnvironmentPaths, EnvironmentSettings, background
from asyncjob_dev.environment.background import ensure_running, status_table, usage_guide
from asyncjob_dev.environment.settings import DEFAULT_APP, DEFAULT_FOLDER, ROOT
from asyncjob_dev.environment.state import lock_holder
from asyncjob_dev.node.cli import node
from asyncjob_dev.signals import click_errors

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_FOLDER,
    help="Where data, logs and kubeconfig go.  [default: .dev]",
)
IS_QUEUE = re.compile("[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""Names that fit into that of a Pod, too."""
APP = click.option(
    "--app", default=DEFAULT_APP, show_default=True, help="What workers run, module:attribute."
)


def _queues(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    queues = value.split(",")
    if not all(map(IS_QUEUE.fullmatch, queues)) or len(set(queues)) != len(queues):
        raise click.BadParameter(f"{value!r} is no list of different queues, such as default,mail")
    return value


QUEUES = click.option(
    "--queues",
    default=DEFAULT_QUEUE,
    show_default=True,
    callback=_queues,
    help="Separated by commas; each has workers of its own.",
)


def _print_step(step: str) -> None:
    click.echo(f"{step} …", err=True)


@click.group()
def main() -> None:
    """Run asyncjob on this machine, on a real Kubernetes API server."""


main.add_command(node)


@main.command()
@FOLDER
@APP
@click.option("--workers", type=click.IntRange(1, 16), default=2, show_default=True)
@click.option("--slots", type=click.IntRange(1), default=4, show_default=True, help="Per worker.")
@QUEUES
@click.option(
    "--port",
    "api_port",
    type=click.IntRange(1, 65535),
    help="Of the API.  [default: a free one]",
)
@click.option(
    "--gateway-port",
    type=click.IntRange(1, 65535),
    help="Of the gateway.  [default: 8080, or a free one]",
)
@click.pass_context
def up(context: click.Context, /, folder: Path, **chosen: Any) -> None:
    """Start control plane, operator, gateway and workers in the background."""
    layout = EnvironmentPaths(folder.absolute())
    given = {
        name: value
        for name, value in chosen.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    with click_errors():
        pid = ensure_running(layout, EnvironmentSettings(**chosen), given, _print_step)
    if pid is not None:
        click.echo(f"already up (process {pid}); `make down` first to change what runs\n")
    click.echo(status_table(layout, Path.cwd()))
    click.echo(usage_guide(layout, Path.cwd()))


@main.command()
@FOLDER
@click.option("--wipe", is_flag=True, help="Forget all jobs, too.")
def down(folder: Path, wipe: bool) -> None:
    """Stop everything that `up` started; jobs are kept for the next time."""
    layout = EnvironmentPaths(folder.absolute())
    with click_errors():
        was_up = background.stop_background(layout)
        if wipe:
            background.wipe(layout)
    click.echo("stopped" if was_up else "nothing was running")
    click.echo(
        "all jobs are forgotten" if wipe else "jobs are kept; `make down WIPE=1` forgets them"
    )


@main.command()
@FOLDER
def status(folder: Path) -> None:
    """Say what runs; exit code 1 if nothing does."""
    layout = EnvironmentPaths(folder.absolute())
    with click_errors():
        pid = lock_holder(layout.lock)
    if pid is None:
        click.echo("not up; `make up` starts it")
        sys.exit(1)
    click.echo(status_table(layout, Path.cwd()))
    click.echo(usage_guide(layout, Path.cwd()))


@main.command()
@click.option(
    "--examples",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=ROOT / "examples",
    help="Where the manifests are.  [default: examples]",
)
def demo(examples: Path) -> None:
    """Show jobs that succeed, retry, die, outlive their worker, or are refused; check them all."""
    with click_errors():
        as_it_should = run_demo(examples.absolute())
    sys.exit(0 if as_it_should else 1)
