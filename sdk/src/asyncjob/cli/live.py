"""A table that is drawn again in its place. Of the tables only this one needs rich."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from asyncjob.cli.screen import Screen
from asyncjob.cli.tables import Table, lines

BELOW = 3
"""Lines kept free: the title, and what tells that there is more."""


class LiveTable:
    """A context manager; what was shown last stays when it ends."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._console = Console(no_color=not screen.colour, highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

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

    def show(self, table: Table, *, title: str = "") -> None:
        """Draw the table where the last one was."""
        size = self._console.size
        drawn = list(lines(table, colour=self._screen.colour, width=size.width))
        text = "\n".join([title, *fitting(drawn, size.height - BELOW)])
        self._live.update(Text.from_ansi(text, no_wrap=True, overflow="crop"), refresh=True)


def fitting(drawn: list[str], room: int) -> list[str]:
    """Return the lines that fit, and how many do not."""
    if len(drawn) <= room:
        return drawn
    kept = max(room - 1, 1)
    return [*drawn[:kept], f"… {len(drawn) - kept} more"]
