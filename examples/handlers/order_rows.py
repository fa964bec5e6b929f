"""The rows of a CSV file of orders, good and bad, each with its line."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from examples.handlers.order_book import Order
from pydantic import BaseModel, ValidationError

COLUMNS = frozenset(field.alias or name for name, field in Order.model_fields.items())


class BadRow(BaseModel):
    """A row that is no order: where it is, and why."""

    line: int
    problem: str


@dataclass(frozen=True)
class Rows:
    """An open file: iterates once over its rows, in order."""

    stream: BinaryIO
    reader: "csv.DictReader[str]"
    size: int

    def __iter__(self) -> Iterator[Order | BadRow]:
        for row in self.reader:
            yield self._read(row)

    @property
    def percent(self) -> float:
        """How much of the file has been read, 0 to 100, to within a few kilobytes."""
        return 100 * self.stream.tell() / max(1, self.size)

    def _read(self, row: dict[str, str]) -> Order | BadRow:
        try:
            return Order.model_validate({name: row[name] for name in COLUMNS})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            return BadRow(line=self.reader.line_num, problem=problem)


@contextmanager
def open_rows(path: Path) -> Iterator[Rows]:
    """Open the file; raises ValueError for one without the columns of an order."""
    with path.open("rb") as stream:
        text = TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        reader = csv.DictReader(text)
        if missing := COLUMNS - set(reader.fieldnames or ()):
            raise ValueError(f"{path} has no column {', '.join(sorted(missing))}")
        yield Rows(stream, reader, path.stat().st_size)
