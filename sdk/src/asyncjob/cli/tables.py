"""Tables as kubectl draws them: padded columns under capitals. Pure; colours are words of click."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import click

GAP: Final = "   "
NAMESPACE: Final = "NAMESPACE"
"""Heading of the first column where several namespaces are listed."""

SHORTEST: Final = 12
"""A last column with less room than this is not cut but left to the terminal to wrap."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and its colour, if any."""

    text: str
    colour: str = ""


Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows. The last column is cut where the terminal ends."""

    head: tuple[str, ...]
    rows: Sequence[Row]
    least: Sequence[int] = field(default=())
    """Widths that columns have at least, so that tables below one another line up."""

    def widths(self) -> list[int]:
        """Return how wide each column has to be."""
        columns = zip(self.head, *([cell.text for cell in row] for row in self.rows), strict=True)
        own = [max(map(len, column)) for column in columns]
        return [max(pair) for pair in zip_longest(own, self.least, fillvalue=0)]


def led_by(head: str, cells: Iterable[str], table: Table) -> Table:
    """Return the table with one more column before all others."""
    rows = [(Cell(text), *row) for text, row in zip(cells, table.rows, strict=True)]
    return Table((head, *table.head), rows, table.least)


def row(*cells: str | Cell) -> Row:
    """Return a row; what is empty is shown as nothing."""
    return tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells)


def lines(
    table: Table, *, colour: bool = False, width: int | None = None, headed: bool = True
) -> Iterator[str]:
    """Return the table line by line."""
    widths = table.widths()
    if headed:
        head = tuple(Cell(text, "heading") for text in table.head)
        yield _line(head, widths, colour=colour, width=width)
    for one in table.rows:
        yield _line(one, widths, colour=colour, width=width)


def _line(cells: Row, widths: list[int], *, colour: bool, width: int | None) -> str:
    room = _room(widths, width)
    *front, last = cells
    padded = [
        Cell(cell.text.ljust(size), cell.colour) for cell, size in zip(front, widths, strict=False)
    ]
    parts = [*padded, Cell(cut(one_line(last.text), room), last.colour)]
    return GAP.join(_paint(part) if colour else part.text for part in parts).rstrip()


def _room(widths: list[int], width: int | None) -> int | None:
    if width is None:
        return None
    room = width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    return room if room >= SHORTEST else None


def cut(text: str, room: int | None) -> str:
    """Return the text, cut with an ellipsis where it is longer than the room."""
    return text if room is None or len(text) <= room else text[: max(room - 1, 0)] + "…"


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters, which could forge output."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def _paint(cell: Cell) -> str:
    return styled(cell.text, cell.colour)


def styled(text: str, colour: str) -> str:
    """Return the text in a colour; `bold`, `dim` and `heading` are colours, too."""
    if not colour or not text.strip():
        return text
    body = text.rstrip()
    rest = text[len(body) :]
    if colour in {"bold", "heading"}:
        return click.style(body, bold=True) + rest
    return (click.style(body, dim=True) if colour == "dim" else click.style(body, fg=colour)) + rest
