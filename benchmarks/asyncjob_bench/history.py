"""The last runs worth showing, whose bars the page has side by side."""

import shutil
from pathlib import Path
from typing import Final

from asyncjob_bench import report, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.reckoning.results import Results
from asyncjob_bench.reckoning.verdicts import read_limits

RUNS: Final = "runs"
KEPT: Final = 3
WHOLE: Final = "full"


def objection(results: Results) -> str | None:
    """Return what speaks against showing these results, if anything does."""
    scale, others = results.run["scale"], results.others
    if scale != WHOLE or others > report.NOISY:
        return f"of scale {scale}, and others used {others:.0%} of the machine"
    return None


def gap(run: Results) -> str | None:
    """Return what a run of the bars lacks: a part that failed, or a bar without a number."""
    bars = (limit.key for limit in read_limits(store.LIMITS, "bars"))
    missing = [*run.failed, *(key for key in bars if key not in run.medians)]
    return f"without {', '.join(missing)}" if missing else None


def keep(out: Path, shown: Path) -> None:
    """Copy the last runs to where the page takes them from: complete, whole and quiet ones."""
    stored = sorted((out / RUNS).glob(f"*-{store.LATEST}"))
    worth = [path for path in stored if _is_worth_it(path)]
    folder = shown / RUNS
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, path in enumerate(worth[-KEPT:], 1):
        shutil.copyfile(path, folder / f"{number}.json")


def read(shown: Path) -> list[Results]:
    """Return the runs that the page shows, oldest first."""
    return [store.read(path) for path in sorted((shown / RUNS).glob("*.json"))]


def _is_worth_it(path: Path) -> bool:
    try:
        run = store.read(path)
    except BenchError:
        return False
    return objection(run) is None and gap(run) is None
