"""A CSV file as a table: its columns, and what its numeric columns add up to."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path


class BadTableError(ValueError):
    """The file is not a table."""


@dataclass
class Column:
    """What is known of a column; blank cells count for nothing."""

    name: str
    values: int = 0
    total: Decimal = Decimal(0)
    least: Decimal | None = None
    most: Decimal | None = None
    numeric: bool = True

    def add(self, cell: str) -> None:
        """Take a cell into account."""
        number = _number(cell) if self.numeric and cell.strip() else None
        if number is None:
            self.numeric = self.numeric and not cell.strip()
            return
        self.values += 1
        self.total += number
        self.least = number if self.least is None else min(self.least, number)
        self.most = number if self.most is None else max(self.most, number)


@dataclass(frozen=True)
class Table:
    """A surveyed file; `totals` holds the columns to add up, by name, in their order."""

    path: Path
    columns: Sequence[str]
    rows: int
    totals: dict[str, Column] = field(default_factory=dict)

    @classmethod
    def survey(cls, path: Path, wanted: Sequence[str] | None = None) -> "Table":
        """Read the whole file once; raises BadTableError that names the line or the column."""
        lines = _read(path)
        header = next(lines, None)
        if not header:
            raise BadTableError(f"{path} has no header line")
        _check_header(path, header, wanted or [])
        columns = [Column(name) for name in header]
        rows = 0
        for row in lines:
            rows += 1
            for column, cell in zip(columns, row, strict=True):
                column.add(cell)
        return cls(path, header, rows, _chosen(path, columns, wanted))

    def __iter__(self) -> Iterator[list[str]]:
        """Read the rows again, without the header."""
        lines = _read(self.path)
        next(lines, None)
        return lines


def _read(path: Path) -> Iterator[list[str]]:
    width = 0
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream)
        for row in reader:
            if not row:
                continue
            width = width or len(row)
            if len(row) != width:
                raise BadTableError(
                    f"{path}, line {reader.line_num}: {len(row)} fields, the header has {width}"
                )
            yield row


def _check_header(path: Path, header: Sequence[str], wanted: Sequence[str]) -> None:
    if len(set(header)) != len(header):
        raise BadTableError(f"{path}: two columns have the same name")
    if unknown := [name for name in wanted if name not in header]:
        raise BadTableError(f"{path} has no column {unknown[0]!r}, only {', '.join(header)}")


def _chosen(
    path: Path, columns: Sequence[Column], wanted: Sequence[str] | None
) -> dict[str, Column]:
    numeric = {column.name: column for column in columns if column.numeric and column.values}
    if wanted is None:
        return numeric
    if words := [name for name in wanted if name not in numeric]:
        raise BadTableError(f"{path}: column {words[0]!r} is not numeric")
    return {name: numeric[name] for name in wanted}


def _number(cell: str) -> Decimal | None:
    try:
        number = Decimal(cell.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
