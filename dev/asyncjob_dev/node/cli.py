"""`python -m asyncjob_dev node`: a real node that stays until it is taken down."""

import os
import sys
import tempfile
from pathlib import Path

import click

from asyncjob_dev.images import find_engine
from asyncjob_dev.node.node import Node
from asyncjob_dev.node.programs import missing_requirements
from asyncjob_dev.signals import click_errors, unwind_on_signals

NAME = click.option("--name", default="dev", show_default=True, help="Several can be up at once.")


@click.group()
def node() -> None:
    """Run real pods on this machine: a node of its own, as root on Linux."""


@node.command()
@NAME
def up(name: str) -> None:
    """Start a node in the background and print the path of its kubeconfig."""
    started = Node(name, outlives_us=True)
    with click_errors(), unwind_on_signals():
        started.start()
    click.echo(started.kubeconfig)
    steps = ", ".join(f"{step} {seconds:g} s" for step, seconds in started.seconds.items())
    click.echo(f"ready ({steps}); `node down --name={name}` takes it down", err=True)


@node.command()
@NAME
def down(name: str) -> None:
    """End a node with everything on it."""
    with click_errors():
        was_up = Node(name).stop()
    click.echo("taken down" if was_up else "nothing was running")


@node.command()
@NAME
def status(name: str) -> None:
    """Say whether a node is up; exit code 1 if not."""
    with click_errors():
        found = Node(name)
        if not found.is_up:
            click.echo("not up; `python -m asyncjob_dev node up` starts it")
            sys.exit(1)
    click.echo(found.kubeconfig if found.seconds else "starting")


@node.command()
def check() -> None:
    """Say what this machine lacks for a node; exit code 1 if anything."""
    if missing := missing_requirements(os.environ):
        click.echo("; ".join(missing))
        sys.exit(1)


@node.command()
@NAME
@click.argument("images", nargs=-1, required=True)
def load(name: str, images: tuple[str, ...]) -> None:
    """Import IMAGES: names that docker, podman or buildah knows, or archives by `docker save`."""
    into = Node(name)
    with click_errors(), tempfile.TemporaryDirectory(prefix="images-") as folder:
        for image in images:
            into.load(_archive(image, Path(folder)))


def _archive(image: str, folder: Path) -> Path:
    if Path(image).is_file():
        return Path(image)
    packed = folder / "image.tar"
    find_engine(os.environ).save(image, packed)
    return packed
