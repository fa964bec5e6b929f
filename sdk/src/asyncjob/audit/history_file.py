"""The history file: JSON lines, gzip if its name ends in `.gz`.

A run of the recorder begins with a line `start` and ends with a line `end`, which is missing where
the recorder was killed. Between them stand `version` lines, each with one version of one object in
the order in which the API server gave them (for each resource), and the lists from which a watch
goes on. A list that is not the first of its resource is a gap: versions before it may be missing.
"""

import gzip
import os
import sys
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Final

from asyncjob.errors import AsyncJobError
from asyncjob.extras import needs
from asyncjob.json_types import Json, JsonObject, integer, text

with needs("cli"):
    import orjson

FORMAT: Final = 1
"""Raised when an older command line would read a file wrongly."""

DIGESTS: Final = "digests"
WHOLE: Final = "whole"

STDIO: Final = "-"
MAX_LINE_BYTES: Final = 16 * 2**20
"""Bytes of a line. The API server takes objects of 3 MiB; JSON may write a character in six."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_LEVEL: Final = 3
_GZIP_FORMAT: Final = 31
"""What zlib calls gzip."""

_BUFFER_BYTES: Final = 2**18


class HistoryFileError(AsyncJobError):
    """The history cannot be read or written."""

    code = "history-file"


class NotAHistoryError(HistoryFileError):
    """The file is not a history, or not one that this version can read."""


class HistoryLine(StrEnum):
    """What a line of the file says, its field `line`."""

    START = "start"
    """A recording begins: format, version, namespace or `*`, time."""

    LIST = "list"
    """The objects of a resource follow as they are; `gap`: versions before may be missing."""

    LIST_END = "listEnd"
    """They are complete, as of `resourceVersion`. What was not among them is gone."""

    VERSION = "version"
    """One version of an object; `event` is ADDED, MODIFIED, DELETED or, in a list, LISTED."""

    END = "end"
    """The recording was ended in good order; `versions` is how many it holds. `behind`: resources
    whose watch was cut then, each with the time until which versions were seen."""


@dataclass(frozen=True, slots=True)
class RecordingScope:
    """What a recording holds; all recordings in one file have the same."""

    namespace: str
    """`*` for all."""

    contents: str
    """`digests`, or `whole` with payloads, results and checkpoints."""

    def __str__(self) -> str:
        where = "all namespaces" if self.namespace == "*" else f"namespace {self.namespace}"
        return f"{where} {'with' if self.contents == WHOLE else 'without'} payloads"


def scope_of(start: JsonObject) -> RecordingScope:
    """Return the scope that a line `start` tells."""
    return RecordingScope(text(start, "namespace"), text(start, "contents"))


class HistoryWriter:
    """Adds lines to a history file; each gets the time at which it was written.

    With `packed` each flush writes one gzip member, so that the file can be read to its end, and
    gone on with, even after the recorder was killed.
    """

    def __init__(self, stream: IO[bytes], *, packed: bool = False) -> None:
        self._stream = stream
        self._packed = packed
        self._buffer = bytearray()
        self.versions = 0
        """Versions written so far."""

    def write(self, line: HistoryLine, fields: Mapping[str, Json], time: str) -> None:
        """Add a line; raises HistoryFileError if it cannot be written."""
        if line is HistoryLine.VERSION:
            self.versions += 1
        self._buffer += orjson.dumps({"line": line.value, "time": time, **fields})
        self._buffer += b"\n"
        if len(self._buffer) > _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Give what was written to the system; raises HistoryFileError where that fails."""
        data, self._buffer = bytes(self._buffer), bytearray()
        if not data:
            return
        try:
            left = memoryview(gzip.compress(data, _GZIP_LEVEL) if self._packed else data)
            while left:  # what is not buffered takes as much as the disk has room for
                left = left[self._stream.write(left) :]
            self._stream.flush()
        except OSError as error:
            raise _failed("the history", error) from error


@contextmanager
def open_for_recording(
    name: str, *, append: bool, scope: RecordingScope
) -> Iterator[HistoryWriter]:
    """Open a new file, readable only by its owner, or with `append` one that may exist.

    Raises HistoryFileError, NotAHistoryError for what is no history of this scope.
    """
    if name == STDIO:
        yield HistoryWriter(sys.stdout.buffer)
        return
    packed = name.endswith(".gz")
    try:
        if append and _has_content(Path(name)):
            _check_scope(name, scope)
            packed = _end_cut_recording(Path(name))
        flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else os.O_EXCL)
        stream = os.fdopen(os.open(name, flags, 0o600), "wb", buffering=0)
    except FileExistsError:
        raise HistoryFileError(
            f"{name} exists; --append goes on in it, another name begins a new history"
        ) from None
    except OSError as error:
        raise _failed(name, error) from error
    with stream:
        writer = HistoryWriter(stream, packed=packed)
        try:
            yield writer
        finally:
            writer.flush()
            if not append and not os.fstat(stream.fileno()).st_size:
                Path(name).unlink(missing_ok=True)  # it failed before there was anything to keep


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _check_scope(name: str, scope: RecordingScope) -> None:
    """Raise NotAHistoryError where the file is none, or one of another scope."""
    with closing(read_history(name)) as lines:
        known = scope_of(next(lines))
    if known != scope:
        raise NotAHistoryError(f"{name} is a recording of {known}; --append goes on with the same")


def _end_cut_recording(path: Path) -> bool:
    """Put right what a recorder that was killed while it wrote has left at the end of a file.

    Returns whether the file is packed, which its content tells, not its name.
    """
    with path.open("r+b") as written:
        if written.read(2) == _GZIP_MAGIC:
            written.seek(0)
            written.truncate(_end_of_members(written))
            return True
        written.seek(-1, os.SEEK_END)
        if written.read(1) != b"\n":
            written.write(b"\n")
        return False


def _end_of_members(stream: IO[bytes]) -> int:
    """Return where the last whole gzip member of a file ends."""
    end = at = 0
    member = zlib.decompressobj(_GZIP_FORMAT)
    while chunk := stream.read(_BUFFER_BYTES):
        at += len(chunk)
        while chunk:
            try:
                member.decompress(chunk)
            except zlib.error:
                return end
            if not member.eof:
                break
            chunk = member.unused_data
            end = at - len(chunk)
            member = zlib.decompressobj(_GZIP_FORMAT)
    return end


def read_history(name: str) -> Generator[JsonObject, None, None]:
    """Yield the lines of a history file, or of stdin; one line cut off may end a recording.

    Raises HistoryFileError for what is not a history.
    """
    try:
        with _open_plain(name) as plain:
            yield from _parsed_lines(name, plain)
    except OSError as error:
        raise _failed(name, error) from error


@contextmanager
def _open_plain(name: str) -> Iterator[IO[bytes]]:
    if name == STDIO:
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as plain:
        yield plain


def _parsed_lines(name: str, plain: IO[bytes]) -> Iterator[JsonObject]:
    damaged = number = 0
    for number, raw in enumerate(json_lines(plain), start=1):
        if len(raw) > MAX_LINE_BYTES:
            raise NotAHistoryError(f"{name}:{number}: too long for a line of a history")
        line = parse_line(raw)
        if number == 1:
            _check_first(name, line)
        if line is None:
            damaged = damaged or number
        elif not damaged or text(line, "line") == HistoryLine.START:
            damaged = 0
            yield line
        else:
            raise NotAHistoryError(f"{name}:{damaged}: not a line of a history")
    if not number:
        raise NotAHistoryError(f"{name} is empty: nothing was recorded in it")


def json_lines(plain: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, unpacked if it is gzip; one that is cut off may end early."""
    peek = getattr(plain, "peek", None)
    packed = peek is not None and peek(2)[:2] == _GZIP_MAGIC
    stream: IO[bytes] = gzip.GzipFile(fileobj=plain) if packed else plain  # type: ignore[assignment]  # typeshed: GzipFile is no IO
    try:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            yield line
    except (EOFError, zlib.error):  # gzip without its end: the writer was killed
        return


def parse_line(raw: bytes) -> JsonObject | None:
    """Return a line, None for one that was cut off."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _check_first(name: str, line: JsonObject | None) -> None:
    if line is None or text(line, "line") != HistoryLine.START:
        raise NotAHistoryError(f"{name}: not a history of `asyncjob audit record`")
    if integer(line, "format") > FORMAT:
        version = text(line, "version", "unknown")
        raise NotAHistoryError(f"{name}: written by a newer version ({version}); check with it")


def _failed(name: str, error: OSError) -> HistoryFileError:
    return HistoryFileError(f"{name}: {error.strerror or error}")
