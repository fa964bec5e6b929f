"""`python -m asyncjob_dev node`: a real node that stays until it is taken down."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from asyncjob_dev.endings import unwound_by_signals
from asyncjob_dev.errors import DevError
from asyncjob_dev.node.node import Node

NAME = click.option("--name", default="dev", show_default=True, help="Several can be up at once.")


@contextmanager
def _errors_in_words() -> Iterator[None]:
    try:
        yield
    except DevError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("\ninterrupted; nothing that it started is left running", err=True)
        sys.exit(130)


@click.group()
def node() -> None:
    """Run real pods on this machine: a node of its own, as root on Linux."""


@node.command()
@NAME
def up(name: str) -> None:
    """Start a node in the background and print the path of its kubeconfig."""
    started = Node(name, outlives_us=True)
    with _errors_in_words(), unwound_by_signals():
        started.start()
    click.echo(started.kubeconfig)
    steps = ", ".join(f"{step} {seconds:g} s" for step, seconds in started.seconds.items())
    click.echo(f"ready ({steps}); `node down --name={name}` takes it down", err=True)


@node.command()
@NAME
def down(name: str) -> None:
    """End a node with everything on it."""
    with _errors_in_words():
        was_up = Node(name).stop()
    click.echo("taken down" if was_up else "nothing was running")


@node.command()
@NAME
def status(name: str) -> None:
    """Say whether a node is up; exit code 1 if not."""
    with _errors_in_words():
        found = Node(name)
        if not found.is_up:
            click.echo("not up; `python -m asyncjob_dev node up` starts it")
            sys.exit(1)
    click.echo(found.kubeconfig if found.seconds else "starting")


@node.command()
@NAME
@click.argument("archives", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def load(name: str, archives: tuple[Path, ...]) -> None:
    """Import images from archives, as `docker save` writes them."""
    with _errors_in_words():
        for archive in archives:
            Node(name).load(archive)
