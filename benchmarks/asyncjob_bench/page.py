"""The generated parts of docs/explanation/performance.md: no number there is typed by hand.

What the page shows is a copy of results that somebody has published from a quiet machine.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from asyncjob_bench import history, report, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.reckoning import tables
from asyncjob_bench.reckoning.remarks import annotate
from asyncjob_bench.reckoning.results import Results, Row
from asyncjob_bench.reckoning.sizing import road, sizing
from asyncjob_bench.reckoning.tables import Lines
from asyncjob_bench.reckoning.verdicts import judge, read_limits
from asyncjob_dev.reference.blocks import fill, table

DOCS: Final = store.BENCHMARKS.parent / "docs" / "explanation"
PAGE: Final = DOCS / "performance.md"
SHOWN: Final = DOCS / "performance"
MARK: Final = "measured"
NOTHING: Final = "*Not measured yet on a quiet machine: `make bench`, then `make bench-page`.*"

STORED: Final = (store.LATEST, store.CURVES, store.PROFILE, store.PRICES)
RUN_CURVES: Final = ("writes-by-user", "operator-by-jobs")
CURVE_NAMES: Final = ("objects", "workers", "payload", "long-jobs", "retention")

Block = Callable[[], str]


def publish(out: Path, shown: Path = SHOWN) -> None:
    """Copy what was measured last to where the page takes it from.

    Raises BenchError where that was small, or the machine was not quiet.
    """
    found = [name for name in STORED if (out / name).exists()]
    if not found:
        raise BenchError(f"{out} holds no results: run `make bench` first")
    for name in found:
        _demand_worth(out / name)
    shown.mkdir(exist_ok=True)
    for name in found:
        shutil.copyfile(out / name, shown / name)
    history.keep(out, shown)


def _demand_worth(path: Path) -> None:
    found = store.read(path)
    reason = history.objection(found) or (history.gap(found) if path.name == store.LATEST else None)
    if reason:
        raise BenchError(
            f"{path} is {reason}: the page shows whole runs of scale {history.WHOLE}, on a quiet "
            "machine"
        )


def annotate_limits(limits: Path = store.LIMITS, shown: Path = SHOWN) -> None:
    """Write measured mean and headroom beside each bar."""
    bars = {limit.key: limit for limit in read_limits(limits, "bars")}
    text, spreads = limits.read_text(encoding="utf-8"), store.read(shown / store.LATEST).spreads
    limits.write_text(annotate(text, bars, spreads), encoding="utf-8")


def refresh(*, only_check: bool, page: Path = PAGE, shown: Path = SHOWN) -> list[Path]:
    """Make the page's tables anew, and its plots; returns the page if it changes."""
    results = {name: _read(shown / name) for name in STORED}
    old = page.read_text(encoding="utf-8")
    blocks = _blocks(*(results[name] for name in STORED))
    new = fill(old, {**blocks, "runs": _of_runs(history.read(shown))}, MARK)
    if not only_check:
        page.write_text(new, encoding="utf-8")
        for found in results.values():
            if found:
                report.plots(found, shown)
    return [page] if new != old else []


def _read(path: Path) -> Results | None:
    return store.read(path) if path.exists() else None


def _blocks(
    run: Results | None, curves: Results | None, profile: Results | None, priced: Results | None
) -> dict[str, Block]:
    return {
        "machine": _of(run, _machine),
        "bars": _of(run, _bars),
        "figures": _of(run, lambda it: tables.figures(it, ())),
        "cpu": _of(run, lambda it: tables.rows(it.cpu)),
        "ceiling": _of(run, lambda it: tables.rows(it.proofs)),
        "sizing": _of(run, lambda it: tables.rows(sizing(it.medians))),
        "road": _of(run, lambda it: tables.rows(road(it.medians))),
        **{name: _curve(run, name) for name in RUN_CURVES},
        **{f"curve.{name}": _curve(curves, name) for name in CURVE_NAMES},
        "profile": _curve(profile, "api-server"),
        "profile.processes": _curve(profile, "processes"),
        "prices": _curve(priced, "prices"),
        "plots": lambda: _plots([run, curves]),
    }


def _plots(found: Iterable[Results | None]) -> str:
    """Return all plots, as images beside the page."""
    names = [name for results in found if results for name, _ in report.drawings(results)]
    return "\n".join(f"![{name}]({SHOWN.name}/{name}.svg)" for name in names) or NOTHING


def _of(results: Results | None, lines: Callable[[Results], Lines]) -> Block:
    return lambda: _markdown(lines(results)) if results else NOTHING


def _curve(results: Results | None, name: str) -> Block:
    rows: list[Row] = results.curves.get(name, []) if results else []
    return lambda: _markdown(tables.rows(rows)) if rows else NOTHING


def _bars(results: Results) -> Lines:
    return tables.bars(judge(read_limits(store.LIMITS, "bars"), results.medians), results)


def _of_runs(runs: list[Results]) -> Block:
    limits = read_limits(store.LIMITS, "bars")
    return lambda: _markdown(tables.over_runs(limits, runs)) if runs else NOTHING


def _machine(results: Results) -> Lines:
    return [("What", "Value"), *((key, _words(value)) for key, value in results.run.items())]


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _markdown(lines: Lines) -> str:
    return table(lines[0], lines[1:]) if len(lines) > 1 else NOTHING
