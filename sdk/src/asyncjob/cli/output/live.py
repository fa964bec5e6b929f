"""A table that is redrawn in place, and the bar of an array.

The only output that needs rich, so it is imported by the commands that show it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from asyncjob.cli.output.array_tables import progress_line
from asyncjob.cli.output.printer import Printer
from asyncjob.cli.output.tables import Table, render_lines
from asyncjob.rest.arrays import ArrayInfo

REFRESH_PER_SECOND = 4
"""A busy queue changes more often than anyone can read."""

MARGIN_LINES = 3
"""Lines kept free: the title, and what tells that there is more."""


DrawTable = Callable[[], tuple[str, Table]]
"""Returns a title and a table, as they are now; called from another thread."""


def live_table(printer: Printer, draw: DrawTable) -> Live:
    """Return a context manager that shows it; what was shown last stays when it ends."""
    console = Console(no_color=not printer.colour, highlight=False)

    def render() -> Text:
        title, table = draw()
        size = console.size
        drawn = list(render_lines(table, colour=printer.colour, width=size.width))
        text = "\n".join([title, *fit_lines(drawn, size.height - MARGIN_LINES)])
        return Text.from_ansi(text, no_wrap=True, overflow="crop")

    return Live(
        console=console,
        get_renderable=render,
        refresh_per_second=REFRESH_PER_SECOND,
        vertical_overflow="crop",
    )


def fit_lines(lines: list[str], max_lines: int) -> list[str]:
    """Return the lines that fit, and how many do not."""
    if len(lines) <= max_lines:
        return lines
    kept = max(max_lines - 1, 1)
    return [*lines[:kept], f"… {len(lines) - kept} more"]


@dataclass(frozen=True, slots=True)
class ArrayBar:
    """The progress of an array on a terminal."""

    progress: Progress
    task: TaskID
    now: Callable[[], datetime]

    def show(self, array: ArrayInfo) -> None:
        """Draw it as it is."""
        text = progress_line(array, self.now())
        self.progress.update(self.task, completed=array.done, total=array.total, how=text)

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        self.progress.console.print(text, markup=False, highlight=False)


@contextmanager
def array_bar(now: Callable[[], datetime]) -> Iterator[ArrayBar]:
    """Show a bar on stderr until the block ends."""
    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[how]}", markup=False))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield ArrayBar(progress, progress.add_task("", total=None, how=""), now)
