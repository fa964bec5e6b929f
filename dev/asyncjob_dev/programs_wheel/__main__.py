"""`python -m asyncjob_dev.programs_wheel`: build the wheel for a platform, by default this one."""

import os
import shutil
import tempfile
import tomllib
from pathlib import Path

import click

from asyncjob_dev.binaries import SERVER_TOOLS, Resolver
from asyncjob_dev.binaries.cache import BinaryCache
from asyncjob_dev.binaries.gobuild import go_environment
from asyncjob_dev.binaries.pins import read_pin
from asyncjob_dev.cache_folder import cache_dir
from asyncjob_dev.platforms import platform_name
from asyncjob_dev.programs_wheel.archive import TAGS, Program, write_wheel
from asyncjob_dev.programs_wheel.licences import licences
from asyncjob_dev.progress import ProgressLine
from asyncjob_dev.rehearsal.distributions import commit_time
from asyncjob_dev.signals import click_errors

DEFAULT_OUT = Path("dist/controlplane")


@click.command()
@click.option("--platform", type=click.Choice(list(TAGS)), help="By default this machine's.")
@click.option("--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, show_default=True)
def main(platform: str | None, out: Path) -> None:
    """Build etcd, kube-apiserver and kubectl from their pins, and pack them with all licences."""
    with click_errors():
        made = build(Path().absolute(), platform or platform_name(), out)
    click.echo(f"{made}: {made.stat().st_size:,} bytes")


def build(root: Path, platform: str, out: Path) -> Path:
    """Build the wheel of a platform; returns its path."""
    system, _, machine = platform.partition("-")
    environ = {**os.environ, "GOOS": system, "GOARCH": machine}
    built = Resolver(environ, target=platform).build(SERVER_TOOLS)
    texts: dict[str, bytes] = {}
    cache = BinaryCache(cache_dir(environ))
    with tempfile.TemporaryDirectory() as scratch, ProgressLine("collecting licences"):
        env = go_environment(environ, cache.go, Path(scratch))
        for tool in SERVER_TOOLS:
            texts |= licences(read_pin(tool), shutil.which("go") or "go", env)
    project = tomllib.loads((root / "dev/pyproject.toml").read_text(encoding="utf-8"))["project"]
    with ProgressLine("packing"):
        return write_wheel(
            out,
            platform=platform,
            version=project["version"],
            programs=[Program(one.tool, one.version, one.path) for one in built],
            licences=texts,
            epoch=int(commit_time(root)),
        )


if __name__ == "__main__":
    main()
