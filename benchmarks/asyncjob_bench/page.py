"""The generated parts of docs/explanation/performance.md: no number there is typed by hand.

What the page shows is a copy of results that somebody has published from a quiet machine.
"""

import shutil
from pathlib import Path
from typing import Final

from asyncjob_bench import history, report, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.page_blocks import blocks
from asyncjob_bench.reckoning.remarks import annotate_text
from asyncjob_bench.reckoning.results import Results
from asyncjob_bench.reckoning.verdicts import read_limits
from asyncjob_dev.reference.blocks import fill

PAGE: Final = store.DOCS / "performance.md"
MARK: Final = "measured"


def publish(out: Path, shown: Path = store.SHOWN) -> None:
    """Copy what was measured last to where the page takes it from.

    Raises BenchError where that was small, or the machine was not quiet.
    """
    found = [name for name in store.STORED if (out / name).exists()]
    if not found:
        raise BenchError(f"{out} holds no results: run `make bench` first")
    for name in found:
        _require_publishable(out / name)
    shown.mkdir(exist_ok=True)
    for name in found:
        shutil.copyfile(out / name, shown / name)
    history.copy_last_runs(out, shown)


def _require_publishable(path: Path) -> None:
    found = store.read(path)
    reason = history.objection(found) or (
        history.missing_measurements(found) if path.name == store.LATEST else None
    )
    if reason:
        raise BenchError(
            f"{path} is {reason}: the page shows whole runs of scale {history.FULL_SCALE}, on a "
            "quiet "
            "machine"
        )


def annotate_limits(limits: Path = store.LIMITS, shown: Path = store.SHOWN) -> None:
    """Write measured mean and headroom beside each bar."""
    bars = {limit.key: limit for limit in read_limits(limits, "bars")}
    text, spreads = limits.read_text(encoding="utf-8"), store.read(shown / store.LATEST).spreads
    limits.write_text(annotate_text(text, bars, spreads), encoding="utf-8")


def refresh(*, only_check: bool, page: Path = PAGE, shown: Path = store.SHOWN) -> list[Path]:
    """Make the page's tables anew, and its plots; returns the page if it changes."""
    results = {name: _read_results(shown / name) for name in store.STORED}
    old = page.read_text(encoding="utf-8")
    new = fill(old, blocks(results, history.read_runs(shown)), MARK)
    if not only_check:
        page.write_text(new, encoding="utf-8")
        for found in results.values():
            if found:
                report.plots(found, shown)
    return [page] if new != old else []


def _read_results(path: Path) -> Results | None:
    return store.read(path) if path.exists() else None
