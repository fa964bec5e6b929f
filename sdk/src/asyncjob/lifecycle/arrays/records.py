"""Files of items: where each record begins, and what it says; pure, and in bounded memory.

A record is an item. In JSON lines it is a line, in CSV a row, whose quoted fields may hold
newlines. Lines that are blank are no records. A file comes in blocks of any size; what a record
says is looked at only by the chunk that runs it, so that a broken one fails alone.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from asyncjob.free_json import FreeJsonError, parse
from asyncjob.json_types import Json

MAX_RECORD_BYTES: Final = 1024 * 1024
"""Longest record of a file of items: a chunk holds one of them for each item it runs at a time."""

MAX_HEADER_BYTES: Final = 64 * 1024
"""How far into a CSV file of items its header may reach: each chunk reads the file up to there."""

_QUOTE: Final = ord('"')
_FIELD_END: Final = re.compile(rb"[,\n]")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_COMPRESSED: Final = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4")


class RecordFormat(StrEnum):
    """How the records of a file are written."""

    JSON_LINES = "JSONLines"
    CSV = "CSV"


class RecordError(ValueError):
    """A record, or the header of a file, cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file: its bytes from `offset` to before `end`, None if they are too many."""

    offset: int
    end: int
    data: bytes | None


class _Csv(StrEnum):
    """Where in a row of CSV the splitter is."""

    FIELD_BEGINS = "a field begins"
    PLAIN = "in a field without quotes"
    QUOTED = "in a field with quotes"
    QUOTE = "behind a quote in a field with quotes"


def detect_format(path: str) -> RecordFormat:
    """Return the format that a file's name says. Raises RecordError for a compressed file."""
    name = path.lower()
    if name.endswith(_COMPRESSED):
        raise RecordError(f"{path} is compressed, so its records have no offsets: unpack it")
    return RecordFormat.CSV if name.endswith(".csv") else RecordFormat.JSON_LINES


class RecordSplitter:
    """Splits a file, from an offset at which a record begins, into its records."""

    def __init__(
        self, format_: RecordFormat, offset: int = 0, *, max_bytes: int = MAX_RECORD_BYTES
    ) -> None:
        self._is_csv = format_ is RecordFormat.CSV
        self._max_bytes = max_bytes
        self._begin = offset
        self._position = offset
        self._pending = bytearray()
        self._too_long = False
        self._state = _Csv.FIELD_BEGINS

    def feed(self, block: bytes) -> Iterator[Record]:
        """Yield the records that end within the next block of the file."""
        at = 0
        while at < len(block):
            end = self._find_end(block, at)
            self._take(block[at:end] if end else block[at:])
            if not end:
                return
            at = end
            yield from self._finish()

    def finish(self) -> Iterator[Record]:
        """Yield the last record of the file, if no newline ends it."""
        yield from self._finish()

    def _take(self, part: bytes) -> None:
        self._position += len(part)
        if self._too_long or len(self._pending) + len(part) > self._max_bytes:
            self._too_long = True
            self._pending.clear()
        else:
            self._pending += part

    def _finish(self) -> Iterator[Record]:
        begin, data, too_long = self._begin, bytes(self._pending), self._too_long
        self._begin, self._too_long = self._position, False
        self._pending.clear()
        self._state = _Csv.FIELD_BEGINS
        if begin == 0:
            data = data.removeprefix(_BYTE_ORDER_MARK)
        if too_long or not (data.isspace() or not data):
            yield Record(begin, self._position, None if too_long else data)

    def _find_end(self, block: bytes, at: int) -> int:
        """Return where the record that `at` belongs to ends, 0 if not within the block."""
        if not self._is_csv:
            return block.find(b"\n", at) + 1
        if self._state is _Csv.FIELD_BEGINS:
            # A row without any quote, as most are: no field has to be looked at.
            end = block.find(b"\n", at) + 1
            if end and block.find(b'"', at, end) < 0:
                return end
        return self._find_row_end(block, at)

    def _find_row_end(self, block: bytes, at: int) -> int:
        while at < len(block):
            if self._state is _Csv.QUOTED:
                at = block.find(b'"', at) + 1
                if not at:
                    return 0
                self._state = _Csv.QUOTE
            elif self._state is _Csv.QUOTE:
                doubled = block[at] == _QUOTE
                self._state = _Csv.QUOTED if doubled else _Csv.PLAIN
                at += doubled
            elif self._state is _Csv.FIELD_BEGINS and block[at] == _QUOTE:
                self._state = _Csv.QUOTED
                at += 1
            else:
                found = _FIELD_END.search(block, at)
                if found is None:
                    self._state = _Csv.PLAIN
                    return 0
                at = found.end()
                self._state = _Csv.FIELD_BEGINS
                if block[at - 1] != ord(","):
                    return at
        return 0


def read_header(record: Record) -> tuple[str, ...]:
    """Return the names of a CSV file's columns. Raises RecordError if they are of no use."""
    if record.data is None or record.end > MAX_HEADER_BYTES:
        raise RecordError(f"the header ends at byte {record.end}, beyond {MAX_HEADER_BYTES}")
    columns = _read_row(record.data, "the header")
    if not all(columns):
        raise RecordError(f"the header has a column without a name: {', '.join(columns)[:200]}")
    if len(set(columns)) != len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise RecordError(f"the header has two columns of the name {twice[:100]!r}")
    return tuple(columns)


def read_record(number: int, record: Record, columns: Sequence[str] | None) -> Json:
    """Return what a record says: any JSON, or the row of a CSV file by the names of its columns.

    Raises RecordError, which names the record and where in the file it is.
    """
    what = f"record {number} (at byte {record.offset})"
    if record.data is None:
        size = record.end - record.offset
        hint = "; is a quote never closed?" if columns is not None else ""
        raise RecordError(f"{what} has {size} bytes, at most {MAX_RECORD_BYTES} may be{hint}")
    if columns is None:
        try:
            return parse(record.data, what=what)
        except FreeJsonError as error:
            raise RecordError(str(error)) from None
    fields = _read_row(record.data, what)
    if len(fields) != len(columns):
        raise RecordError(f"{what} has {len(fields)} fields, the header {len(columns)}")
    return dict(zip(columns, fields, strict=True))


def _read_row(data: bytes, what: str) -> list[str]:
    try:
        [row] = csv.reader([data.decode().rstrip("\r\n")], strict=True)
    except UnicodeDecodeError as error:
        raise RecordError(f"{what} is not UTF-8: {error.reason} at {error.start}") from None
    except csv.Error as error:
        raise RecordError(f"{what} is not CSV: {error}") from None
    return row
