"""Jobs and payloads as people write them.

Files and folders of JSON, JSON lines and YAML, manifests of AsyncJobs, and `key=value` pairs on the
command line. All of it becomes documents, the fields of a submission with the place they come from.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Final, TextIO

from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.names import API_VERSION, JOB_KIND

JSON_LINES_SUFFIXES: Final = frozenset({".jsonl", ".ndjson"})
YAML_SUFFIXES: Final = frozenset({".yaml", ".yml"})
KNOWN_SUFFIXES: Final = JSON_LINES_SUFFIXES | YAML_SUFFIXES | {".json"}

STDIN: Final = "-"

MAX_TOTAL_BYTES: Final = 64 * 2**20
"""Bytes of all files together. All is checked before the first job is submitted, so all of it is in
memory, which takes about ten times as much."""

SPLIT_ADVICE: Final = "submit it in parts (split --lines=10000 FILE cuts JSON lines)"


class DocumentError(ValueError):
    """A file cannot be read; the message says which and where."""


@dataclass(frozen=True, slots=True)
class Document:
    """One value, and where it comes from."""

    location: str
    value: Json


def read_documents(
    paths: Iterable[str], stdin: TextIO, *, advice: str = SPLIT_ADVICE
) -> Iterator[Document]:
    """Yield the documents of all files, in order; a folder's by name, with its folders.

    Raises DocumentError. `advice` says what to do about files that are too large.
    """
    budget = _ByteBudget(MAX_TOTAL_BYTES, advice)
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
    advice: str

    def read(self, location: str, stream: IO[bytes]) -> bytes:
        """Read a file to its end; raises DocumentError where that goes too far."""
        data = stream.read(self.remaining + 1)
        self.remaining -= len(data)
        if self.remaining < 0:
            limit = MAX_TOTAL_BYTES >> 20
            raise DocumentError(f"{location}: more than {limit} MiB in one call; {self.advice}")
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

    from asyncjob.cli.input import yaml_loader

    try:
        values = list(yaml_loader.load_documents(text))
    except yaml_loader.YamlTooLargeError as error:
        raise DocumentError(f"{location}: {error}") from error
    except RecursionError as error:
        deepest = yaml_loader.MAX_DEPTH
        raise DocumentError(f"{location}: nested more than {deepest} levels deep") from error
    except (YAMLError, ValueError) as error:
        raise DocumentError(f"{location}: not YAML: {' '.join(str(error).split())}") from error
    several = len(values) > 1
    for number, value in enumerate(values, start=1):
        if value is not None:
            yield Document(f"{location} (document {number})" if several else location, value)


_ALLOWED_METADATA: Final = frozenset({"name", "labels", "namespace"})
_APPLY_HINT: Final = "use kubectl apply -f"


def job_documents(document: Document, namespace: str | None) -> Iterator[Document]:
    """Yield the jobs of a document as fields of a Submission, by the names of JSON.

    `namespace` is the one that was asked for, if any. Raises DocumentError.
    """
    value = document.value
    if isinstance(value, list):
        yield from _each_job(document.location, value, namespace)
    elif isinstance(value, dict) and "kind" in value:
        yield from _jobs_of_manifest(document.location, value, namespace)
    elif isinstance(value, dict):
        yield document
    else:
        raise DocumentError(
            f"{document.location}: a job is an object with a type, or a manifest of an {JOB_KIND}; "
            "for a payload pass its TYPE first"
        )


def _each_job(location: str, values: list[Json], namespace: str | None) -> Iterator[Document]:
    for number, one in enumerate(values, start=1):
        yield from job_documents(Document(f"{location}[{number}]", one), namespace)


def _jobs_of_manifest(
    location: str, value: JsonObject, namespace: str | None
) -> Iterator[Document]:
    kind = value["kind"]
    if kind in ("List", f"{JOB_KIND}List"):  # a list or an object has no hash
        yield from _each_job(location, list(items(value, "items")), namespace)
    elif kind == JOB_KIND and value.get("apiVersion") == API_VERSION:
        yield Document(location, _submission_fields(location, value, namespace))
    else:
        what = f"{value.get('apiVersion')} {kind}"
        raise DocumentError(f"{location}: {what} is not {API_VERSION} {JOB_KIND}; {_APPLY_HINT}")


def _submission_fields(location: str, value: JsonObject, namespace: str | None) -> JsonObject:
    metadata = child(value, "metadata")
    beyond = sorted(set(metadata) - _ALLOWED_METADATA)
    if beyond:
        raise DocumentError(f"{location}: metadata.{beyond[0]} cannot be submitted; {_APPLY_HINT}")
    meant = text(metadata, "namespace")
    if meant and meant != namespace:
        raise DocumentError(f"{location}: metadata.namespace is {meant}: pass -n {meant}")
    named = {key: metadata[key] for key in ("name", "labels") if key in metadata}
    return {**as_object(value.get("spec")), **named}


_PAIR: Final = re.compile(r"(?P<key>[^=:\s{\[\"][^=\s]*?)(?P<sign>:?=)(?P<value>.*)", re.DOTALL)


_SHOWN_LENGTH: Final = 40
"""Of a word that is wrong, enough to find it again; it may be a whole file."""


def is_pair(text: str) -> bool:
    """Return whether that is a pair, and not JSON."""
    return _PAIR.fullmatch(text) is not None


def parse_payload(arguments: Sequence[str]) -> Json:
    """Return the payload that the words after the type make: JSON, or pairs.

    Raises ValueError that says which of the two it is not.
    """
    if all(map(is_pair, arguments)):
        return parse_pairs(arguments)
    if len(arguments) == 1:
        try:
            return parse_json(arguments[0])
        except ValueError:
            if not arguments[0][:1].isalpha():
                raise
    wrong = next(word for word in arguments if not is_pair(word))
    shown = repr(wrong if len(wrong) <= _SHOWN_LENGTH else f"{wrong[:_SHOWN_LENGTH]}…")
    raise ValueError(f"{shown} is not a pair: write key=text, key:=JSON, or one JSON value")


def parse_pairs(arguments: Sequence[str]) -> dict[str, Json]:
    """Return the object of pairs."""
    payload: dict[str, Json] = {}
    for word in arguments:
        found = _PAIR.fullmatch(word)
        assert found
        key = found["key"]
        if key in payload:
            raise ValueError(f"{key!r} is given twice")
        payload[key] = (
            found["value"] if found["sign"] == "=" else _parse_pair_json(key, found["value"])
        )
    return payload


def _parse_pair_json(key: str, text: str) -> Json:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"{key}:=… takes JSON; for text write {key}=… ({error})") from error


def parse_json(text: str) -> Json:
    """Return the value; raises ValueError in words."""
    try:
        value: Json = json.loads(text, object_pairs_hook=_unique_pairs)
    except json.JSONDecodeError as error:
        raise ValueError(f"{_excerpt(text)} is not JSON: {error}") from error
    except RecursionError as error:
        # Slow to import, hence not before it is needed.
        from asyncjob.free_json import MAX_DEPTH

        raise ValueError(f"{_excerpt(text)} is nested deeper than {MAX_DEPTH} levels") from error
    return value


def _unique_pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {_excerpt(key)} is given twice in one object")
            seen.add(key)
    return found


def _excerpt(text: str, max_length: int = 40) -> str:
    return repr(text if len(text) <= max_length else text[:max_length] + "…")
