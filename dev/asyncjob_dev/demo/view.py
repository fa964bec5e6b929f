"""Shows what kubectl shows, live: redrawn on a terminal, a line per change elsewhere."""

import shutil
import time
from collections.abc import Iterator
from typing import Protocol, TextIO

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
