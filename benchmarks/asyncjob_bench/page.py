"""The generated parts of docs/explanation/performance.md: no number there is typed by hand.

The page shows a copy of results that somebody has published from a quiet machine, and the bars of
the last runs side by side.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from asyncjob_bench import report, store
from asyncjob_bench.errors import BenchError
from asyncjob_bench.stats import tables
from asyncjob_bench.stats.limits import check_limits, read_limits
from asyncjob_bench.stats.results import Results, Row
from asyncjob_bench.stats.tables import Lines, annotate_text
from asyncjob_bench.stats.usage import cluster_sizing, sizing
from asyncjob_dev.reference.blocks import fill, table

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


NOT_MEASURED: Final = "*Not measured yet on a quiet machine: `make bench`, then `make bench-page`.*"
RUN_CURVES: Final = ("writes-by-user", "operator-by-jobs")
CURVE_NAMES: Final = ("objects", "workers", "payload", "long-jobs", "retention", "arrays")

Block = Callable[[], str]


def blocks(results: Mapping[str, Results | None], runs: list[Results]) -> dict[str, Block]:
    """Return what fills each block, from the results by name and the runs side by side."""
    run, curves, profile, priced, versions, some = (results.get(name) for name in store.STORED)
    return {
        "headline": _of(run, tables.headline),
        "dates": _dates(results),
        "runs": _of_runs(runs),
        "machine": _of(run, _machine),
        "bars": _of(run, _bars),
        "parts": _of(some, lambda it: _bars(it, only_measured=True)),
        "parts.machine": _of(some, _machine),
        "figures": _of(run, lambda it: tables.figures(it, ())),
        "cpu": _of(run, lambda it: tables.rows(it.cpu)),
        "ceiling": _of(run, lambda it: tables.rows(it.proofs)),
        "sizing": _of(run, lambda it: tables.rows(sizing(it.medians))),
        "road": _of(run, lambda it: tables.rows(cluster_sizing(it.medians))),
        **{name: _curve(run, name) for name in RUN_CURVES},
        **{f"curve.{name}": _curve(curves, name) for name in CURVE_NAMES},
        "profile": _curve(profile, "api-server"),
        "profile.processes": _curve(profile, "processes"),
        "prices": _curve(priced, "prices"),
        "versions": _curve(versions, "versions"),
        "plots": lambda: _plots([run, curves]),
    }


def _plots(found: Iterable[Results | None]) -> str:
    """Return all plots, as images beside the page."""
    names = [name for results in found if results for name, _ in report.drawings(results)]
    return "\n".join(f"![{name}]({store.SHOWN.name}/{name}.svg)" for name in names) or NOT_MEASURED


def _of(results: Results | None, lines: Callable[[Results], Lines]) -> Block:
    return lambda: _markdown(lines(results)) if results else NOT_MEASURED


def _curve(results: Results | None, name: str) -> Block:
    rows: list[Row] = results.curves.get(name, []) if results else []
    return lambda: _markdown(tables.rows(rows)) if rows else NOT_MEASURED


def _bars(results: Results, *, only_measured: bool = False) -> Lines:
    limits = read_limits(store.LIMITS, "bars")
    verdicts = check_limits(limits, results.medians, only_measured=only_measured)
    return tables.bars(verdicts, results)


def _of_runs(runs: list[Results]) -> Block:
    limits = read_limits(store.LIMITS, "bars")
    return lambda: _markdown(tables.over_runs(limits, runs)) if runs else NOT_MEASURED


def _machine(results: Results) -> Lines:
    return [("What", "Value"), *((key, _value_text(value)) for key, value in results.run.items())]


def _dates(results: Mapping[str, Results | None]) -> Block:
    found = [(name.removesuffix(".json"), it) for name, it in results.items() if it]
    lines: Lines = [("What", "Measured"), *((name, _when(it)) for name, it in found)]
    return lambda: _markdown(lines)


def _when(results: Results) -> str:
    """Return when a run began, and when what it has left as it was."""
    run = results.run
    if not (earlier := run.get("measured earlier")):
        return str(run["began"])
    return f"{_value_text(run['parts'])}: {run['began']}; {_value_text(earlier)}"


def _value_text(value: object) -> str:
    if isinstance(value, dict):
        times = dict.fromkeys(value.values())
        by_time = {time: [key for key, at in value.items() if at == time] for time in times}
        return "; ".join(f"{', '.join(keys)}: {time}" for time, keys in by_time.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _markdown(lines: Lines) -> str:
    return table(lines[0], lines[1:]) if len(lines) > 1 else NOT_MEASURED


PAGE: Final = store.DOCS / "performance.md"
MARK: Final = "measured"


def publish(out: Path, shown: Path = store.SHOWN) -> None:
    """Copy what was measured last to where the page takes it from.

    A run of some parts is shown beside the last whole one, with what runs of other parts before it
    have measured; likewise one of some curves. Raises BenchError where a run was
    small, or the machine was not quiet.
    """
    found = [name for name in store.STORED if (out / name).exists()]
    if store.SOME_PARTS in found and store.LATEST in found and _is_of_some_parts(out):
        found.remove(store.LATEST)
    if not found:
        raise BenchError(f"{out} holds no results: run `make bench` first")
    for name in found:
        _require_publishable(out / name)
    shown.mkdir(exist_ok=True)
    before = {name: _read_results(shown / name) for name in (store.SOME_PARTS, store.CURVES)}
    for name in found:
        shutil.copyfile(out / name, shown / name)
        if kept := before.get(name):
            _keep_others(kept, shown / name)
    if store.LATEST in found:  # else the runs that are shown stay, with the last of them
        copy_last_runs(out, shown)


def _keep_others(before: Results, path: Path) -> None:
    """Keep what an earlier run of other parts or curves has measured, and say when that was."""
    now = store.read(path)
    earlier: dict[str, str] = dict(before.run.get("measured earlier", {}))
    if now.run["began"] != before.run["began"]:
        earlier |= dict.fromkeys(before.run["parts"], before.run["began"])
    earlier = {part: at for part, at in earlier.items() if part not in now.run["parts"]}
    if not earlier:
        return
    others = {key: it for key, it in before.spreads.items() if key not in now.spreads}
    kept = Results(
        run=now.run | {"measured earlier": earlier},
        spreads=others | now.spreads,
        cpu=now.cpu,
        proofs=now.proofs,
        curves=before.curves | now.curves,
    )
    text = json.dumps(kept.to_json(), indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def _is_of_some_parts(out: Path) -> bool:
    latest, some = (store.read(out / name) for name in (store.LATEST, store.SOME_PARTS))
    return latest.run == some.run


def _require_publishable(path: Path) -> None:
    found = store.read(path)
    reason = objection(found) or (
        missing_measurements(found) if path.name == store.LATEST else None
    )
    if reason:
        raise BenchError(
            f"{path} is {reason}: the page shows whole runs of scale {FULL_SCALE}, on a "
            "quiet "
            "machine"
        )


def annotate_limits(limits: Path = store.LIMITS, shown: Path = store.SHOWN) -> None:
    """Write measured mean and headroom beside each bar."""
    bars = {limit.key: limit for limit in read_limits(limits, "bars")}
    text, spreads = limits.read_text(encoding="utf-8"), store.read(shown / store.LATEST).spreads
    limits.write_text(annotate_text(text, bars, spreads), encoding="utf-8")


def refresh(*, only_check: bool, page: Path = PAGE, shown: Path = store.SHOWN) -> list[Path]:
    """Make the page's tables again, and its plots; returns the page if it changes."""
    results = {name: _read_results(shown / name) for name in store.STORED}
    old = page.read_text(encoding="utf-8")
    new = fill(old, blocks(results, read_runs(shown)), MARK)
    if not only_check:
        page.write_text(new, encoding="utf-8")
        for found in results.values():
            if found:
                report.plots(found, shown)
    return [page] if new != old else []


def _read_results(path: Path) -> Results | None:
    return store.read(path) if path.exists() else None
