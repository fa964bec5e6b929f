"""Files of jobs or payloads: JSON, JSON lines, YAML with several documents, folders of these.

Reads them; what they mean is the business of `manifests`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Final, TextIO

from asyncjob.cli.pairs import parse_json
from asyncjob.json_types import Json

JSON_LINES_SUFFIXES: Final = frozenset({".jsonl", ".ndjson"})
YAML_SUFFIXES: Final = frozenset({".yaml", ".yml"})
KNOWN_SUFFIXES: Final = JSON_LINES_SUFFIXES | YAML_SUFFIXES | {".json"}

STDIN: Final = "-"

MAX_TOTAL_BYTES: Final = 64 * 2**20
"""Bytes of all files together. All is checked before the first job is submitted, so all of it is in
memory, which takes about ten times as much."""


class DocumentError(ValueError):
    """A file cannot be read; the message says which and where."""


@dataclass(frozen=True, slots=True)
class Document:
    """One value, and where it comes from."""

    location: str
    value: Json


def read_documents(paths: Iterable[str], stdin: TextIO) -> Iterator[Document]:
    """Yield the documents of all files, in order; a folder's by name, with its folders.

    Raises DocumentError.
    """
    budget = _ByteBudget(MAX_TOTAL_BYTES)
    for path in paths:
        if path == STDIN:
            yield from parse_documents(
                "stdin", _decode("stdin", budget.read("stdin", _stdin_bytes(stdin))), ""
            )
        else:
            yield from _from_path(Path(path), budget)


@dataclass(slots=True)
class _ByteBudget:
    """How much may still be read."""

    remaining: int

    def read(self, location: str, stream: IO[bytes]) -> bytes:
        """Read a file to its end; raises DocumentError where that goes too far."""
        data = stream.read(self.remaining + 1)
        self.remaining -= len(data)
        if self.remaining < 0:
            raise DocumentError(
                f"{location}: more than {MAX_TOTAL_BYTES >> 20} MiB in one call; submit it in "
                "parts "
                "(split --lines=10000 FILE cuts JSON lines)"
            )
        return data


def _stdin_bytes(stdin: TextIO) -> IO[bytes]:
    return getattr(stdin, "buffer", None) or BytesIO(stdin.read().encode())


def _from_path(path: Path, budget: _ByteBudget) -> Iterator[Document]:
    if not path.is_dir():
        yield from parse_documents(str(path), _read_text(path, budget), path.suffix.lower())
        return
    files = sorted(
        one for one in path.rglob("*") if one.suffix.lower() in KNOWN_SUFFIXES and one.is_file()
    )
    if not files:
        raise DocumentError(f"{path}: no .json, .jsonl, .yaml or .yml file in this folder")
    for file in files:
        yield from parse_documents(str(file), _read_text(file, budget), file.suffix.lower())


def _read_text(path: Path, budget: _ByteBudget) -> str:
    try:
        with path.open("rb") as stream:
            return _decode(str(path), budget.read(str(path), stream))
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from error


def _decode(location: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{location}: not UTF-8 text: {error}") from error


def parse_documents(location: str, text: str, suffix: str) -> Iterator[Document]:
    """Yield the documents of a text; without a known suffix it is found out what it is."""
    if not text.strip():
        raise DocumentError(f"{location}: empty")
    yield from _reader(text, suffix)(location, text)


def _reader(text: str, suffix: str) -> Callable[[str, str], Iterator[Document]]:
    if suffix in JSON_LINES_SUFFIXES:
        return _read_json_lines
    if suffix in YAML_SUFFIXES:
        return _read_yaml
    return _read_json if suffix == ".json" else _guess_reader(text)


def _guess_reader(text: str) -> Callable[[str, str], Iterator[Document]]:
    if text.lstrip()[0] not in '{["':
        return _read_yaml
    lines = [line for line in text.split("\n") if line.strip()]
    return _read_json_lines if len(lines) > 1 and all(map(_is_json, lines)) else _read_json


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read_json(location: str, text: str) -> Iterator[Document]:
    yield Document(location, _document_value(location, text))


def _read_json_lines(location: str, text: str) -> Iterator[Document]:
    # str.splitlines would also cut at characters that JSON text may have, such as U+2028
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{location}:{number}"
            yield Document(place, _document_value(place, line))


def _document_value(location: str, text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError as error:
        raise DocumentError(f"{location}: {error}") from error


def _read_yaml(location: str, text: str) -> Iterator[Document]:
    # Slow to import, hence not before it is needed.
    from yaml import YAMLError

    from asyncjob.cli import yaml_values

    try:
        values = list(yaml_values.load_documents(text))
    except yaml_values.YamlTooLargeError as error:
        raise DocumentError(f"{location}: {error}") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{location}: not YAML: {' '.join(str(error).split())}") from error
    several = len(values) > 1
    for number, value in enumerate(values, start=1):
        if value is not None:
            yield Document(f"{location} (document {number})" if several else location, value)
