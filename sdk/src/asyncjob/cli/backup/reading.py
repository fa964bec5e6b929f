"""Reads an export: all of it is checked before anything is done with it."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Final

import orjson

from asyncjob.cli.backup.checking import WrongLineError, checked
from asyncjob.cli.backup.contents import Contents, Key, Record
from asyncjob.cli.backup.errors import BrokenExportError, failed
from asyncjob.cli.backup.format import END, FORMAT, HEAD
from asyncjob.json_types import JsonObject, as_object, child, integer, text

STDIN: Final = "-"
LONGEST: Final = 16 * 2**20
"""Bytes of a line. The API server takes objects of 3 MiB; JSON may write a character in six."""

TOLD: Final = 10
"""So many mistakes are told at once."""

_CUT: Final = (
    "cut off in the middle of this line; head --lines=-1 FILE | … restore - --partial "
    "takes those before it"
)
_GZIP: Final = b"\x1f\x8b"


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or a copy of stdin, in which one can go back; raises FileFailedError."""
    try:
        if name == STDIN:
            with TemporaryFile() as stream:
                copyfileobj(sys.stdin.buffer, stream)
                stream.seek(0)
                yield stream
        else:
            with Path(name).open("rb") as stream:
                yield stream
    except OSError as error:
        raise failed(name, error) from error


@dataclass
class _Reading:
    """What was found so far."""

    name: str
    partial: bool
    records: dict[Key, Record] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)
    headed: bool = False
    ended: bool = False

    def take(self, number: int, offset: int, line: bytes) -> None:
        """Take one line."""
        where = f"{self.name}:{number}"
        try:
            self._object(where, offset, _parsed(line))
        except WrongLineError as error:
            self.mistakes.append(f"{where}: {error}")

    def _object(self, where: str, offset: int, obj: JsonObject) -> None:
        match obj.get("kind"):
            case kind if kind == HEAD:
                self._head(obj)
            case kind if kind == END:
                self._end(obj)
            case _:
                self._once(checked(obj, where, offset))

    def _head(self, obj: JsonObject) -> None:
        if integer(obj, "format") > FORMAT:
            version = text(obj, "version", "unknown")
            raise WrongLineError(f"format: written by a newer version ({version}); restore with it")
        self.headed = True

    def _end(self, obj: JsonObject) -> None:
        self.ended = True
        found = Counter(key.kind for key in self.records)
        said = {kind: count for kind, count in child(obj, "counts").items() if count}
        if not (self.partial or self.mistakes) and said != dict(found):
            raise WrongLineError(
                f"counts: {dict(said)} were written and {dict(found)} are here; "
                "--partial takes what is here"
            )

    def _once(self, record: Record) -> None:
        if record.key in self.records:
            kind, namespace, name = record.key
            raise WrongLineError(f"metadata.name: {kind} {namespace}/{name} is here twice")
        self.records[record.key] = record

    def whole(self) -> Contents:
        """Return what the file holds; raises BrokenExportError."""
        if not (self.partial or self.headed or self.mistakes):
            self.mistakes.append(
                f"{self.name}:1: kind: an export begins with {HEAD}; is it one? "
                "--partial takes a part of one"
            )
        elif not (self.partial or self.ended or self.mistakes):
            self.mistakes.append(
                f"{self.name}: it has no {END} at its end, so it was cut off; "
                "--partial takes what is there"
            )
        if self.mistakes:
            more = len(self.mistakes) - TOLD
            rest = [f"… and {more} more"] if more > 0 else []
            raise BrokenExportError("\n".join([*self.mistakes[:TOLD], *rest]))
        return Contents(self.name, tuple(self.records.values()))


def read(stream: IO[bytes], name: str, *, partial: bool) -> Contents:
    """Return what the file holds; raises BrokenExportError with a line for each mistake."""
    reading, offset = _Reading("stdin" if name == STDIN else name, partial), 0
    for number, line in enumerate(iter(lambda: stream.readline(LONGEST + 1), b""), start=1):
        if number == 1 and line.startswith(_GZIP):
            raise BrokenExportError(f"{name}: compressed; gunzip < FILE | … restore - reads it")
        if len(line) > LONGEST:
            raise BrokenExportError(
                f"{reading.name}:{number}: more than {LONGEST >> 20} MiB in one line, which is no "
                "object that an API server takes; is it an export?"
            )
        if line.strip():
            reading.take(number, offset, line)
        offset += len(line)
    return reading.whole()


def reread(stream: IO[bytes], record: Record) -> JsonObject:
    """Return the object of a record, whole."""
    stream.seek(record.offset)
    return _parsed(stream.readline(LONGEST))


def _parsed(line: bytes) -> JsonObject:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        said = f"not JSON: {error}" if line.endswith(b"\n") else _CUT
        raise WrongLineError(said) from error
    if not isinstance(value, dict):
        raise WrongLineError("no JSON object")
    return as_object(value)
