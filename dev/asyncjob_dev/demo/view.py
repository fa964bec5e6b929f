"""What the demo shows: the jobs while it runs, as kubectl shows them, and a table at its end.

The jobs are redrawn on a terminal, one line per change elsewhere. Of scenarios that failed, the
jobs and the ends of the logs follow the table.
"""

import io
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asyncjob import AsyncJob
from asyncjob.lifecycle.phases import FINISHED_PHASES
from asyncjob.names import JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.demo.checks import ScenarioResult
from asyncjob_dev.environment import Environment
from asyncjob_dev.files import tail

AGE_COLUMN = "AGE"


class View(Protocol):
    """Where the demo shows itself."""

    def show(self, table: str) -> None:
        """Show what `kubectl get` printed now."""

    def note(self, text: str) -> None:
        """Say what happens beside that."""


class TerminalView:
    """Draws the table again in its place; notes scroll by above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._table = ""
        self._height = 0

    def show(self, table: str) -> None:
        """Draw the table in the place of the last one."""
        self._clear()
        self._table = table
        width = shutil.get_terminal_size().columns - 1
        lines = [line[:width] for line in table.splitlines()]
        self._height = len(lines)
        self._stream.write("".join(f"{line}\n" for line in lines))
        self._stream.flush()

    def note(self, text: str) -> None:
        """Print the text above the table."""
        self._clear()
        self._stream.write(f"{text}\n")
        self.show(self._table)

    def _clear(self) -> None:
        if self._height:
            self._stream.write(f"\x1b[{self._height}A\x1b[J")
        self._height = 0


class LineView:
    """Prints a line when a row changes otherwise than by growing older."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._known: dict[str, list[str]] = {}

    def show(self, table: str) -> None:
        """Print the rows that have changed."""
        if not self._known:
            self.note("kubectl get asyncjobs, a line for each change:")
        for row in parse_table(table):
            name = row[0]
            if self._known.get(name) != row:
                self._known[name] = row
                self.note(_aligned(row))

    def note(self, text: str) -> None:
        """Print the text with the time since the start."""
        self._stream.write(f"{time.monotonic() - self._started:6.1f}s  {text.rstrip()}\n")
        self._stream.flush()


COLUMN_WIDTHS = (14, 10, 13, 8, 3, 4)


def _aligned(row: list[str]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, COLUMN_WIDTHS, strict=False))


def parse_table(table: str) -> Iterator[list[str]]:
    """Take kubectl's table apart by the columns of its header, which is left out, as is the age."""
    header, *lines = table.splitlines() or [""]
    names = header.split()
    starts = [header.index(name) for name in names]
    ends = [*starts[1:], None]
    for line in lines:
        yield [
            line[start:end].strip()
            for name, start, end in zip(names, starts, ends, strict=True)
            if name != AGE_COLUMN
        ]


Jobs = Mapping[str, AsyncJob]

POLL_SECONDS = 0.3


def read_jobs(plane: ControlPlane) -> Jobs:
    """Return all jobs by name, as the API server has them."""
    found = plane.api.get(collection_path("default", JOBS))["items"]
    jobs = [AsyncJob.model_validate(item) for item in found]
    return {job.metadata.name or "": job for job in jobs}


def watch_until(
    plane: ControlPlane,
    view: View,
    condition: Callable[[Jobs], bool],
    stall_timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Show `kubectl get asyncjobs` until the condition holds.

    False once nothing has moved for `stall_timeout` seconds: a busy machine may take its time.
    """
    before, moved = None, clock()
    while True:
        jobs = read_jobs(plane)
        holds = condition(jobs)
        view.show(plane.kubectl("get", "asyncjobs").stdout)
        if (now := {name: _state(job) for name, job in jobs.items()}) != before:
            before, moved = now, clock()
        if holds or clock() - moved >= stall_timeout:
            return holds
        sleep(POLL_SECONDS)


def _state(job: AsyncJob) -> tuple[object, ...]:
    """Return what moves when a job gets on; renewals of its lease are no progress."""
    return job.status.phase, job.status.attempt, job.status.progress, job.status.checkpoint


def is_finished(job: AsyncJob) -> bool:
    """Whether nothing more happens to the job by itself."""
    return job.status.phase in FINISHED_PHASES


WRAPPED_COLUMNS = {"WHAT": 2, "EXPECTED": 3, "HAPPENED": 3}
"""Columns that are wrapped, and their shares of the width that the others leave."""


def scenario_table(rows: Sequence[ScenarioResult], width: int) -> str:
    """Return the rows in columns that fit into `width` characters."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=True)
    for name in ("", "JOB", "WHAT", "EXPECTED", "HAPPENED", "OK"):
        share = WRAPPED_COLUMNS.get(name)
        table.add_column(name, ratio=share, no_wrap=share is None, overflow="fold")
    for row in rows:
        scenario, result = row.scenario, row.result
        words = (scenario.job, scenario.what, scenario.expected, result.happened)
        cells = (f"({scenario.key})", *words, "yes" if result.ok else "NO")
        table.add_row(*map(Text, cells))
    drawn = io.StringIO()
    Console(file=drawn, width=width, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines())


def problems(rows: Sequence[ScenarioResult]) -> list[str]:
    """Return what went wrong, a sentence each."""
    return [
        f"({row.scenario.key}) {row.scenario.job}: {problem}"
        for row in rows
        for problem in row.result.problems
    ]


LOGS = ("operator", "worker-1", "worker-2")
LOG_LINES = 25


def diagnostics(environment: Environment, rows: Sequence[ScenarioResult]) -> Iterator[str]:
    """Yield each object that went wrong, as the API server has it, and the ends of the logs."""
    for wrong in dict.fromkeys(row.scenario for row in rows if not row.result.ok):
        named = (wrong.kind, wrong.job)
        found = environment.plane.kubectl("get", *named, "-o", "yaml", check=False)
        yield f"--- {wrong.kind} {wrong.job}\n{found.stdout or found.stderr}"
    for name in LOGS:
        end = tail(environment.layout.logs / f"{name}.log", LOG_LINES)
        yield f"--- the end of {name}.log\n{end}"
