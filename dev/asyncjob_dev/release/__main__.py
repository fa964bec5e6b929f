"""`python -m asyncjob_dev.release store|check`: before a release is tagged."""

import sys
from pathlib import Path

import click

from asyncjob_dev.release.store import missing_for_release, store, unpinned_images, versions

ROOT = Path()


@click.group()
def main() -> None:
    """Store what the next version is tested on; check what a release still lacks."""


@main.command("store")
@click.option("--version", help="Instead of the chart's, for a version without a release.")
def store_(version: str | None) -> None:
    """Write tests/releases/VERSION from the tree as it is."""
    click.echo(store(ROOT, version or versions(ROOT)["charts/asyncjob"]))


@main.command()
@click.argument("tag", required=False)
@click.option("--base", default="", help="Image to build on, in place of the Dockerfiles' own.")
def check(tag: str | None, base: str) -> None:
    """Say what keeps the tree from being released, as TAG if there is one."""
    found = [*missing_for_release(ROOT), *unpinned_images(ROOT, {"BASE": base})]
    version = versions(ROOT)["charts/asyncjob"]
    if tag and tag != f"v{version}":
        found.append(f"the tag is {tag}, the version {version}: tag v{version}")
    for one in found:
        click.echo(one, err=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
