"""`python -m asyncjob_dev.images`: build an image of the repository, the worker's by default."""

import os
from pathlib import Path

import click

from asyncjob_dev.errors import DevError
from asyncjob_dev.images.builder import ROOT, BuildRequest, build_image
from asyncjob_dev.images.engines import find_engine


@click.command()
@click.option("--tag", default="asyncjob-worker", show_default=True, help="Name of the image.")
@click.option(
    "--base", default="", help="Base image.  [default: the Dockerfile's, or one made here]"
)
@click.option(
    "--file",
    "dockerfile",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=ROOT / "worker-image" / "Dockerfile",
    help="Dockerfile.  [default: the worker's]",
)
def main(tag: str, base: str, dockerfile: Path) -> None:
    """Build an image with docker, podman or buildah, whichever works here."""
    try:
        engine = find_engine(os.environ)
        build_image(engine, BuildRequest(dockerfile, tag, base), os.environ)
    except DevError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{tag} is built; `{engine.name} images` lists it")


if __name__ == "__main__":
    main()
