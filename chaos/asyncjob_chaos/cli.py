"""`make chaos`."""

import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from asyncjob_chaos.judging.signs import OF_MATRIX, Sign
from asyncjob_chaos.judging.table import complaints, markdown, signs_seen, to_json
from asyncjob_chaos.judging.verdict import Verdict, missing_in_matrix
from asyncjob_chaos.matrix import CELLS, Cell, named, shuffled
from asyncjob_chaos.planes import Planes
from asyncjob_chaos.runner import run_cell
from asyncjob_dev.errors import DevError
from asyncjob_dev.signals import unwind_on_signals

OUT: Final = Path("chaos/out/chaos.json")
SMALL_MINUTES: Final = 2.5
CELL_SECONDS: Final = 50.0
"""About what a cell takes: none is begun that would not end in time."""

LONG_BURST: Final = 50_000
SHORT_BURST: Final = 2_000
FOREVER: Final = float("inf")


def _cells(_: click.Context, __: click.Parameter, value: str) -> list[Cell]:
    try:
        return named([name for name in value.split(",") if name])
    except KeyError as error:
        known = ", ".join(cell.name for cell in CELLS)
        raise click.BadParameter(f"there is no cell {error}; there are {known}") from error


@click.command()
@click.option("--cells", callback=_cells, default="", help="Some only, with commas between.")
@click.option("--minutes", type=float, help="Random cells, for so long.")
@click.option("--small", is_flag=True, help="Random cells for two and a half minutes.")
@click.option("--seed", type=int, help="Of the random choice; a fresh one by default.")
@click.option("--burst", type=int, help="Jobs of a burst.")
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True)
@click.option("--merge", is_flag=True, help="Keep what OUT has of other cells.")
@click.option("--keep", is_flag=True, help="Keep logs and histories of all cells.")
def main(
    *,
    cells: list[Cell],
    minutes: float | None,
    small: bool,
    seed: int | None,
    burst: int | None,
    out: Path,
    merge: bool,
    keep: bool,
) -> None:
    """Do faults to real processes under load; exit 1 if anything is lost or doubled."""
    budget = minutes or (SMALL_MINUTES if small else None)
    chosen: Sequence[Cell] = cells or CELLS
    if budget and not cells:
        seed = secrets.randbits(32) if seed is None else seed
        click.echo(f"seed: {seed}", err=True)
        chosen = shuffled(seed)
    jobs = burst or (SHORT_BURST if budget else LONG_BURST)
    began = datetime.now(UTC)
    folder = Path(tempfile.mkdtemp(prefix="asyncjob-chaos-"))
    found = _stored(out) if merge else {}
    verdicts: list[Verdict] = []
    unseen: list[Sign] = []
    try:
        for verdict in _run(chosen, folder, jobs, 60 * budget if budget else FOREVER):
            found[verdict.cell] = verdict
            click.echo(_line(verdict), err=True)
    finally:
        verdicts = [found[cell.name] for cell in CELLS if cell.name in found]
        whole = len(verdicts) == len(CELLS)
        unseen = missing_in_matrix(verdicts, OF_MATRIX) if whole else []
        out.parent.mkdir(parents=True, exist_ok=True)
        run = {"began": began.isoformat(timespec="seconds"), "seed": seed, "burst": jobs}
        out.write_text(json.dumps(to_json(verdicts, unseen, **run), indent=1) + "\n")
    _end(verdicts, complaints(verdicts, unseen), folder, keep=keep)


def _stored(out: Path) -> dict[str, Verdict]:
    if not out.exists():
        return {}
    stored = json.loads(out.read_text())["cells"]
    return {one["cell"]: Verdict.from_json(one) for one in stored}


def _run(cells: Iterable[Cell], folder: Path, burst: int, seconds: float) -> Iterator[Verdict]:
    deadline = time.monotonic() + seconds
    with Planes(folder) as planes:
        for number, cell in enumerate(cells):
            if number and time.monotonic() + CELL_SECONDS > deadline:
                return
            click.echo(f"{cell.name}: {cell.fault.does}", err=True)
            yield run_cell(cell, planes, folder, burst)


def _line(verdict: Verdict) -> str:
    said = "not run here" if verdict.left_out else "holds" if verdict.holds else "DOES NOT HOLD"
    return f"    {said}, {verdict.jobs} jobs, {verdict.seconds:.0f} s"


def _end(verdicts: Sequence[Verdict], wrong: Sequence[str], folder: Path, *, keep: bool) -> None:
    click.echo(markdown(verdicts))
    click.echo("\nHow often it has happened:\n")
    for line in signs_seen(verdicts):
        click.echo(line)
    if keep or wrong:
        click.echo(f"logs and histories: {folder}", err=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    for line in wrong:
        click.echo(line, err=True)
    sys.exit(1 if wrong else 0)


def command() -> None:
    """Run, with foreseeable errors in a sentence."""
    try:
        with unwind_on_signals():
            main()
    except DevError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
