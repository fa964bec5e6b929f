"""`python -m asyncjob_dev.chart`: copy the roles into the chart, or check the copies for drift.

A chart is packaged from its own folder and cannot reach out of it. The CRDs and policies in there
are written by `python -m asyncjob.schema`.
"""

import sys
from pathlib import Path

import click

ROLES = ("rbac.yaml",)
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--source", type=FOLDER, default=Path("dev/manifests"), show_default=True)
@click.option("--out", type=FOLDER, default=Path("charts/asyncjob/files"), show_default=True)
@click.option("--check", is_flag=True, help="Change nothing; fail if a copy is out of date.")
def main(source: Path, out: Path, *, check: bool) -> None:
    """Bring the chart's copies of the roles into line."""
    stale = [name for name in ROLES if _text(source / name) != _text(out / name)]
    for name in stale:
        click.echo(f"{out / name}: {'is stale' if check else 'written'}")
        if not check:
            (out / name).write_text(_text(source / name), encoding="utf-8")
    sys.exit(1 if check and stale else 0)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    main()
