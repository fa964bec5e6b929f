"""`python -m asyncjob_dev.site`: render the documentation as a version of the site, or serve it."""

from pathlib import Path

import click
import watchfiles

from asyncjob_dev.errors import DevError
from asyncjob_dev.site import versions
from asyncjob_dev.site.build import build
from asyncjob_dev.site.serve import SOURCES, render_on_changes, serving


@click.group()
def main() -> None:
    """Render the documentation as a site, or serve it."""


@main.command("build")
@click.option("--version", default=versions.DEVELOPMENT, show_default=True, help="Its folder.")
@click.option(
    "--into", type=click.Path(path_type=Path), default=Path("dist/docs"), show_default=True
)
def build_version(*, version: str, into: Path) -> None:
    """Render docs/, and fail for a link to nothing or a page in no navigation."""
    try:
        click.echo(build(Path.cwd(), into, version))
    except DevError as error:
        raise click.ClickException(str(error)) from error


@main.command("serve")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option(
    "--into", type=click.Path(path_type=Path), default=Path("dist/docs"), show_default=True
)
def serve(*, port: int, into: Path) -> None:
    """Render docs/ and serve it on this machine; render again when a page changes."""
    root = Path.cwd()

    def render() -> Path:
        return build(root, into, versions.DEVELOPMENT)

    try:
        render()
        with serving(into, port) as address:
            click.echo(f"{address}{versions.DEVELOPMENT}/ (Ctrl-C ends it)")
            there = [root / name for name in SOURCES]
            render_on_changes(render, watchfiles.watch(*there, raise_interrupt=False))
    except (DevError, OSError) as error:
        raise click.ClickException(str(error)) from error


main()
