"""What the demo prints at its end.

The table of scenarios, and for failed ones the jobs and the ends of the logs.
"""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from asyncjob_dev.demo.checks import ScenarioResult
from asyncjob_dev.environment import Environment
from asyncjob_dev.files import tail

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


LOGS = ("operator", "worker-1", "worker-2")
LOG_LINES = 25


def diagnostics(environment: Environment, rows: Sequence[ScenarioResult]) -> Iterator[str]:
    """Yield each job that went wrong, as the API server has it, and the ends of the logs."""
    for name in dict.fromkeys(row.scenario.job for row in rows if not row.result.ok):
        found = environment.plane.kubectl("get", "asyncjob", name, "-o", "yaml", check=False)
        yield f"--- asyncjob {name}\n{found.stdout or found.stderr}"
    for name in LOGS:
        end = tail(environment.layout.logs / f"{name}.log", LOG_LINES)
        yield f"--- the end of {name}.log\n{end}"
