"""What is shown of results: tables in a terminal, and plots beside them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from asyncjob_bench.stats import charts, tables
from asyncjob_bench.stats.limits import LimitVerdict
from asyncjob_bench.stats.results import Results, Row

RATES: Final = {
    "bare ceiling": "bare_ceiling_jobs_s",
    "raw ceiling": "raw_ceiling_jobs_s",
    "asyncjob": "end_to_end_jobs_s",
    "native Jobs": "native_jobs_s",
    "procrastinate": "peer_postgres_jobs_s",
}
NOISY: Final = 0.05


def text(results: Results, verdicts: list[LimitVerdict]) -> str:
    """Return all tables."""
    limited = [verdict.limit.key for verdict in verdicts]
    found = [
        ("Bars", tables.bars(verdicts, results)),
        ("Other figures", tables.figures(results, limited)),
        ("CPU per job, in ms", tables.rows(results.cpu)),
        ("Who is busy at the raw ceiling", tables.rows(results.proofs)),
        *((name, tables.rows(rows)) for name, rows in results.curves.items()),
    ]
    shown = [f"{title}\n\n{tables.terminal(lines)}" for title, lines in found if len(lines) > 1]
    return "\n\n".join([*shown, *_warnings(results)])


def _warnings(results: Results) -> Iterator[str]:
    others = results.foreign_share
    if others > NOISY:
        yield (
            f"NOT QUIET: other programs had {others:.0%} of this machine's time. "
            "Rates and times mean little; ratios and counts hold."
        )


def plots(results: Results, folder: Path) -> list[Path]:
    """Draw what there is to draw; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, drawing in drawings(results):
        file = folder / f"{name}.svg"
        file.write_text(drawing, encoding="utf-8")
        files.append(file)
    return files


def drawings(results: Results) -> Iterator[tuple[str, str]]:
    """Yield name and text of each plot that there are numbers for."""
    medians = results.medians
    rates = {name: medians[key] for name, key in RATES.items() if key in medians}
    if rates:
        yield "rates", charts.bar_chart("Jobs per second", rates, unit="/s")
    for name, rows in [("raw ceiling", results.proofs), *results.curves.items()]:
        yield from _curve(name, rows)


def _curve(name: str, rows: list[Row]) -> Iterator[tuple[str, str]]:
    """Draw rates and memory over the first column, where that counts something."""
    if len(rows) < 2 or isinstance(next(iter(rows[0].values())), str):
        return
    across = next(iter(rows[0]))
    for unit in ("jobs/s", "items/s", "MiB", "ms"):
        series = {
            column: [(float(row[across]), float(row[column])) for row in rows]
            for column in rows[0]
            if re.search(rf"\b{unit}\b", column) and all(column in row for row in rows)
        }
        if series:
            stem = f"{name}-{unit}".replace(" ", "-").replace("/", "-per-")
            yield stem, charts.line_chart(f"{name}: {unit}", series, x=across, y=unit)
