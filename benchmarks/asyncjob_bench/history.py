"""The last runs worth showing, whose bars the page has side by side."""

import shutil
from pathlib import Path
from typing import Final

from asyncjob_bench import report, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.reckoning.results import Results
from asyncjob_bench.reckoning.verdicts import read_limits

RUNS_FOLDER: Final = "runs"
KEPT_RUNS: Final = 3
FULL_SCALE: Final = "full"


def objection(results: Results) -> str | None:
    """Return what speaks against showing these results, if anything does."""
    scale, others = results.run["scale"], results.foreign_share
    if scale != FULL_SCALE or others > report.NOISY:
        return f"of scale {scale}, and others used {others:.0%} of the machine"
    return None


def missing_measurements(run: Results) -> str | None:
    """Return what a run of the bars lacks: a part that failed, or a bar without a number."""
    bars = (limit.key for limit in read_limits(store.LIMITS, "bars"))
    missing = [*run.failed, *(key for key in bars if key not in run.medians)]
    return f"without {', '.join(missing)}" if missing else None


def copy_last_runs(out: Path, shown: Path) -> None:
    """Copy the last runs to where the page takes them from: complete, whole and quiet ones."""
    stored = sorted((out / RUNS_FOLDER).glob(f"*-{store.LATEST}"))
    worth = [path for path in stored if _is_publishable(path)]
    folder = shown / RUNS_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, path in enumerate(worth[-KEPT_RUNS:], 1):
        shutil.copyfile(path, folder / f"{number}.json")


def read_runs(shown: Path) -> list[Results]:
    """Return the runs that the page shows, oldest first."""
    return [store.read(path) for path in sorted((shown / RUNS_FOLDER).glob("*.json"))]


def _is_publishable(path: Path) -> bool:
    try:
        run = store.read(path)
    except BenchError:
        return False
    return objection(run) is None and missing_measurements(run) is None
