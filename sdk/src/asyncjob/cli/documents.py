"""Files of jobs or payloads: JSON, JSON lines, YAML with several documents, folders of these.

Reads them; what they mean is the business of `manifests`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Final, TextIO

from asyncjob.cli.pairs import from_json
from asyncjob.json_types import Json

LINES: Final = frozenset({".jsonl", ".ndjson"})
YAMLS: Final = frozenset({".yaml", ".yml"})
KNOWN: Final = LINES | YAMLS | {".json"}

STDIN: Final = "-"

MOST: Final = 64 * 2**20
"""Bytes of all files together. All is checked before the first job is submitted, so all of it is in
memory, which takes about ten times as much."""


class DocumentError(ValueError):
    """A file cannot be read; the message says which and where."""


@dataclass(frozen=True, slots=True)
class Document:
    """One value, and where it comes from."""

    where: str
    value: Json


def read(paths: Iterable[str], stdin: TextIO) -> Iterator[Document]:
    """Yield the documents of all files, in order; a folder's by name, with its folders.

    Raises DocumentError.
    """
    budget = _Budget(MOST)
    for path in paths:
        if path == STDIN:
            yield from parse("stdin", _decoded("stdin", budget.take("stdin", _bytes(stdin))), "")
        else:
            yield from _from_path(Path(path), budget)


@dataclass(slots=True)
class _Budget:
    """How much may still be read."""

    left: int

    def take(self, where: str, stream: IO[bytes]) -> bytes:
        """Read a file to its end; raises DocumentError where that goes too far."""
        data = stream.read(self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise DocumentError(
                f"{where}: more than {MOST >> 20} MiB in one call; submit it in parts "
                "(split --lines=10000 FILE cuts JSON lines)"
            )
        return data


def _bytes(stdin: TextIO) -> IO[bytes]:
    return getattr(stdin, "buffer", None) or BytesIO(stdin.read().encode())


def _from_path(path: Path, budget: _Budget) -> Iterator[Document]:
    if not path.is_dir():
        yield from parse(str(path), _text(path, budget), path.suffix.lower())
        return
    files = sorted(one for one in path.rglob("*") if one.suffix.lower() in KNOWN and one.is_file())
    if not files:
        raise DocumentError(f"{path}: no .json, .jsonl, .yaml or .yml file in this folder")
    for file in files:
        yield from parse(str(file), _text(file, budget), file.suffix.lower())


def _text(path: Path, budget: _Budget) -> str:
    try:
        with path.open("rb") as stream:
            return _decoded(str(path), budget.take(str(path), stream))
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from error


def _decoded(where: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where}: not UTF-8 text: {error}") from error


def parse(where: str, text: str, suffix: str) -> Iterator[Document]:
    """Yield the documents of a text; without a known suffix it is found out what it is."""
    if not text.strip():
        raise DocumentError(f"{where}: empty")
    yield from _reader(text, suffix)(where, text)


def _reader(text: str, suffix: str) -> Callable[[str, str], Iterator[Document]]:
    if suffix in LINES:
        return _json_lines
    if suffix in YAMLS:
        return _yaml
    return _json if suffix == ".json" else _guess(text)


def _guess(text: str) -> Callable[[str, str], Iterator[Document]]:
    if text.lstrip()[0] not in '{["':
        return _yaml
    lines = [line for line in text.split("\n") if line.strip()]
    return _json_lines if len(lines) > 1 and all(map(_is_json, lines)) else _json


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json(where: str, text: str) -> Iterator[Document]:
    yield Document(where, _value(where, text))


def _json_lines(where: str, text: str) -> Iterator[Document]:
    # str.splitlines would also cut at characters that JSON text may have, such as U+2028
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{where}:{number}"
            yield Document(place, _value(place, line))


def _value(where: str, text: str) -> Json:
    try:
        return from_json(text)
    except ValueError as error:
        raise DocumentError(f"{where}: {error}") from error


def _yaml(where: str, text: str) -> Iterator[Document]:
    # Slow to import, hence not before it is needed.
    from yaml import YAMLError

    from asyncjob.cli import yaml_values

    try:
        values = list(yaml_values.values(text))
    except yaml_values.TooLargeError as error:
        raise DocumentError(f"{where}: {error}") from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    several = len(values) > 1
    for number, value in enumerate(values, start=1):
        if value is not None:
            yield Document(f"{where} (document {number})" if several else where, value)
