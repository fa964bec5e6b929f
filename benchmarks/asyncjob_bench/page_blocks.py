"""What stands in the generated blocks of the page: tables of results, and its plots."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from asyncjob_bench import report, store
from asyncjob_bench.reckoning import tables
from asyncjob_bench.reckoning.results import Results, Row
from asyncjob_bench.reckoning.sizing import cluster_sizing, sizing
from asyncjob_bench.reckoning.tables import Lines
from asyncjob_bench.reckoning.verdicts import check_limits, read_limits
from asyncjob_dev.reference.blocks import table

NOT_MEASURED: Final = "*Not measured yet on a quiet machine: `make bench`, then `make bench-page`.*"
RUN_CURVES: Final = ("writes-by-user", "operator-by-jobs")
CURVE_NAMES: Final = ("objects", "workers", "payload", "long-jobs", "retention")

Block = Callable[[], str]


def blocks(results: Mapping[str, Results | None], runs: list[Results]) -> dict[str, Block]:
    """Return what fills each block, from the results by name and the runs side by side."""
    run, curves, profile, priced = (results.get(name) for name in store.STORED)
    return {
        "dates": _dates(results),
        "runs": _of_runs(runs),
        "machine": _of(run, _machine),
        "bars": _of(run, _bars),
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


def _bars(results: Results) -> Lines:
    return tables.bars(check_limits(read_limits(store.LIMITS, "bars"), results.medians), results)


def _of_runs(runs: list[Results]) -> Block:
    limits = read_limits(store.LIMITS, "bars")
    return lambda: _markdown(tables.over_runs(limits, runs)) if runs else NOT_MEASURED


def _machine(results: Results) -> Lines:
    return [("What", "Value"), *((key, _value_text(value)) for key, value in results.run.items())]


def _dates(results: Mapping[str, Results | None]) -> Block:
    found = [(name.removesuffix(".json"), it) for name, it in results.items() if it]
    lines: Lines = [("What", "Measured"), *((name, str(it.run["began"])) for name, it in found)]
    return lambda: _markdown(lines)


def _value_text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _markdown(lines: Lines) -> str:
    return table(lines[0], lines[1:]) if len(lines) > 1 else NOT_MEASURED
