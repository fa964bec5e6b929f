"""Tables as kubectl draws them: padded columns under headings in capitals.

Pure; colours are names of click's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

import click

GAP: Final = "   "
NAMESPACE_HEADING: Final = "NAMESPACE"
"""Heading of the first column where several namespaces are listed."""

MIN_LAST_COLUMN: Final = 12
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

    headings: tuple[str, ...]
    rows: Sequence[Row]
    min_widths: Sequence[int] = field(default=())
    """Widths that columns have at least, so that tables below one another line up."""

    def widths(self) -> list[int]:
        """Return how wide each column has to be."""
        columns = zip(
            self.headings, *([cell.text for cell in row] for row in self.rows), strict=True
        )
        own = [max(map(len, column)) for column in columns]
        return [max(pair) for pair in zip_longest(own, self.min_widths, fillvalue=0)]


def prepend_column(heading: str, cells: Iterable[str], table: Table) -> Table:
    """Return the table with one more column before all others."""
    rows = [(Cell(text), *row) for text, row in zip(cells, table.rows, strict=True)]
    return Table((heading, *table.headings), rows, table.min_widths)


def row(*cells: str | Cell) -> Row:
    """Return a row; what is empty is shown as nothing."""
    return tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells)


def render_lines(
    table: Table, *, colour: bool = False, width: int | None = None, with_headings: bool = True
) -> Iterator[str]:
    """Return the table line by line."""
    widths = table.widths()
    if with_headings:
        head = tuple(Cell(text, "heading") for text in table.headings)
        yield _render_row(head, widths, colour=colour, width=width)
    for one in table.rows:
        yield _render_row(one, widths, colour=colour, width=width)


def _render_row(cells: Row, widths: list[int], *, colour: bool, width: int | None) -> str:
    room = _last_column_width(widths, width)
    *front, last = cells
    padded = [
        Cell(cell.text.ljust(size), cell.colour) for cell, size in zip(front, widths, strict=False)
    ]
    parts = [*padded, Cell(truncate(one_line(last.text), room), last.colour)]
    return GAP.join(_styled_cell(part) if colour else part.text for part in parts).rstrip()


def _last_column_width(widths: list[int], width: int | None) -> int | None:
    if width is None:
        return None
    room = width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)
    return room if room >= MIN_LAST_COLUMN else None


def truncate(text: str, max_length: int | None) -> str:
    """Return the text, cut with an ellipsis where it is longer than the room."""
    return (
        text
        if max_length is None or len(text) <= max_length
        else text[: max(max_length - 1, 0)] + "…"
    )


def counted(number: int, what: str) -> str:
    """Return a number of things, such as `1 job` or `1,000 jobs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters, which could forge output."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def _styled_cell(cell: Cell) -> str:
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
