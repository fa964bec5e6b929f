"""A table that is redrawn in place.

The only table that needs rich, so it is imported by the commands that show it.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from asyncjob.cli.output.printer import Printer
from asyncjob.cli.output.tables import Table, render_lines

REFRESH_PER_SECOND = 4
"""A busy queue changes more often than anyone can read."""

MARGIN_LINES = 3
"""Lines kept free: the title, and what tells that there is more."""


DrawTable = Callable[[], tuple[str, Table]]
"""Returns a title and a table, as they are now; called from another thread."""


class LiveTable:
    """A context manager; what was shown last stays when it ends."""

    def __init__(self, printer: Printer, draw: DrawTable) -> None:
        self._printer, self._draw = printer, draw
        self._console = Console(no_color=not printer.colour, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=REFRESH_PER_SECOND,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def _render(self) -> Text:
        title, table = self._draw()
        size = self._console.size
        drawn = list(render_lines(table, colour=self._printer.colour, width=size.width))
        text = "\n".join([title, *fit_lines(drawn, size.height - MARGIN_LINES)])
        return Text.from_ansi(text, no_wrap=True, overflow="crop")


def fit_lines(lines: list[str], max_lines: int) -> list[str]:
    """Return the lines that fit, and how many do not."""
    if len(lines) <= max_lines:
        return lines
    kept = max(max_lines - 1, 1)
    return [*lines[:kept], f"… {len(lines) - kept} more"]
