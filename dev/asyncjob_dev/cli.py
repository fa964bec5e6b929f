"""`python -m asyncjob_dev`: the commands behind `make up`, `make down` and `make demo`."""

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from asyncjob_dev.demo import run_demo
from asyncjob_dev.environment import EnvironmentPaths, EnvironmentSettings, background
from asyncjob_dev.environment.background import ensure_running, status_table, usage_guide
from asyncjob_dev.environment.settings import DEFAULT_APP, DEFAULT_FOLDER, ROOT
from asyncjob_dev.environment.state import lock_holder
from asyncjob_dev.node.cli import node
from asyncjob_dev.options import PORT, QUEUES, SLOTS, WORKERS
from asyncjob_dev.signals import click_errors

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_FOLDER,
    help="Where data, logs and kubeconfig go.  [default: .dev]",
)
APP = click.option(
    "--app", default=DEFAULT_APP, show_default=True, help="What workers run, module:attribute."
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
@click.option("--workers", type=WORKERS, default=2, show_default=True, help="Of each queue.")
@SLOTS
@QUEUES
@click.option(
    "--port",
    "api_port",
    type=PORT,
    help="Of the API.  [default: a free one]",
)
@click.option(
    "--gateway-port",
    type=PORT,
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
    if wipe:
        click.echo("all jobs are forgotten")
    elif was_up or layout.control_plane.exists():
        click.echo("jobs are kept; `make down WIPE=1` forgets them")


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
        as_it_should = run_demo(ROOT, examples.absolute())
    sys.exit(0 if as_it_should else 1)
