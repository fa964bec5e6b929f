"""The table at the end of the demo. Pure."""

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from asyncjob_dev.demo.verdict import ScenarioResult

HEADER = ("", "JOB", "WHAT", "EXPECTED", "HAPPENED", "OK")
GAP = "  "
NARROWEST = 16


def scenario_table(rows: Sequence[ScenarioResult], width: int) -> str:
    """Return the rows in columns that fit into `width` characters."""
    cells = [_cells(row) for row in rows]
    job = max(len(line[1]) for line in [HEADER, *cells])
    free = max(3 * NARROWEST, width - (3 + job + 3) - 5 * len(GAP))
    widths = [3, job, free * 2 // 8, free * 3 // 8, free * 3 // 8, 3]
    lines = [_line(HEADER, widths), *(_line(line, widths) for line in cells)]
    return "\n".join(lines)


def problems(rows: Sequence[ScenarioResult]) -> list[str]:
    """Return what went wrong, a sentence each."""
    return [
        f"({row.scenario.key}) {row.scenario.job}: {problem}"
        for row in rows
        for problem in row.result.problems
    ]


def _cells(row: ScenarioResult) -> tuple[str, ...]:
    scenario, verdict = row.scenario, row.result
    words = (scenario.job, scenario.what, scenario.expected, verdict.happened)
    return (f"({scenario.key})", *words, "yes" if verdict.ok else "NO")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    wrapped = [textwrap.wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return "\n".join(
        GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
        for parts in zip_longest(*wrapped, fillvalue="")
    )
