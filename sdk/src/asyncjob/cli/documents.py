"""Files of jobs or payloads: JSON, JSON lines, YAML with several documents, folders of these.

Reads them; what they mean is the business of `manifests`.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from asyncjob.cli.pairs import from_json
from asyncjob.json_types import Json

if TYPE_CHECKING:
    import yaml

LINES: Final = frozenset({".jsonl", ".ndjson"})
YAMLS: Final = frozenset({".yaml", ".yml"})
KNOWN: Final = LINES | YAMLS | {".json"}

STDIN: Final = "-"


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
    for path in paths:
        if path == STDIN:
            yield from parse("stdin", stdin.read(), "")
        else:
            yield from _from_path(Path(path))


def _from_path(path: Path) -> Iterator[Document]:
    if not path.is_dir():
        yield from parse(str(path), _text(path), path.suffix.lower())
        return
    files = sorted(one for one in path.rglob("*") if one.suffix.lower() in KNOWN and one.is_file())
    if not files:
        raise DocumentError(f"{path}: no .json, .jsonl, .yaml or .yml file in this folder")
    for file in files:
        yield from parse(str(file), _text(file), file.suffix.lower())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"{path}: not UTF-8 text: {error}") from error


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
    import yaml

    try:
        values = list(yaml.load_all(text, Loader=_loader()))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    several = len(values) > 1
    for number, value in enumerate(values, start=1):
        if value is not None:
            yield Document(f"{where} (document {number})" if several else where, value)


def _loader() -> "type[yaml.SafeLoader]":
    """Return a loader that leaves times as text, as JSON and kubectl have them."""
    import yaml

    kept: dict[str, Any] = {
        first: [(tag, test) for tag, test in tests if tag != "tag:yaml.org,2002:timestamp"]
        for first, tests in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return type("_Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": kept})
