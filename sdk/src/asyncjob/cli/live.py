"""A table that is drawn again in its place. Of the tables only this one needs rich."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from asyncjob.cli.screen import Screen
from asyncjob.cli.tables import Table, lines

PER_SECOND = 4
"""A busy queue changes more often than anyone can read."""

BELOW = 3
"""Lines kept free: the title, and what tells that there is more."""


Draw = Callable[[], tuple[str, Table]]
"""Returns a title and a table, as they are now; called from another thread."""


class LiveTable:
    """A context manager; what was shown last stays when it ends."""

    def __init__(self, screen: Screen, draw: Draw) -> None:
        self._screen, self._draw = screen, draw
        self._console = Console(no_color=not screen.colour, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=PER_SECOND,
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
        drawn = list(lines(table, colour=self._screen.colour, width=size.width))
        text = "\n".join([title, *fitting(drawn, size.height - BELOW)])
        return Text.from_ansi(text, no_wrap=True, overflow="crop")


def fitting(drawn: list[str], room: int) -> list[str]:
    """Return the lines that fit, and how many do not."""
    if len(drawn) <= room:
        return drawn
    kept = max(room - 1, 1)
    return [*drawn[:kept], f"… {len(drawn) - kept} more"]
