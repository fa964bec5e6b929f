"""Reads an export.

Every line is validated before anything is created, and each mistake is reported with its line and
field.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Final, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from asyncjob.cli.backup.export_file import (
    FOOTER_KIND,
    FORMAT,
    HEADER_KIND,
    PLURALS,
    BrokenExportError,
    file_error,
)
from asyncjob.cli.backup.records import ExportContents, ExportRecord, ObjectKey, queue_of
from asyncjob.json_types import JsonObject, as_object, child, integer, text
from asyncjob.lifecycle.arrays.phases import ArrayPhase
from asyncjob.lifecycle.arrays.skipped_items import remaining_items
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.array import AsyncArraySpec
from asyncjob.models.base import ObjectName
from asyncjob.models.cron import AsyncCronJobSpec
from asyncjob.models.field_errors import field_detail
from asyncjob.models.job import AsyncJobSpec
from asyncjob.models.queue import AsyncQueueSpec
from asyncjob.names import (
    API_VERSION,
    ARRAY_KIND,
    ARRAY_LABEL,
    CRON_JOB_KIND,
    JOB_KIND,
    PARENT_LABEL,
    QUEUE_KIND,
    is_namespace,
)

SPEC_MODELS: Final[dict[str, type[BaseModel]]] = {
    QUEUE_KIND: AsyncQueueSpec,
    CRON_JOB_KIND: AsyncCronJobSpec,
    ARRAY_KIND: AsyncArraySpec,
    JOB_KIND: AsyncJobSpec,
}


AnyPhase = TypeVar("AnyPhase", Phase, ArrayPhase)


class InvalidLineError(ValueError):
    """A line is not what it has to be; the message names the field."""


class _ObjectMetadata(BaseModel):
    name: ObjectName
    namespace: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def parse_record(obj: JsonObject, location: str, offset: int) -> ExportRecord:
    """Return what is to be known of the object of a line; raises WrongLineError."""
    kind = text(obj, "kind")
    if kind not in PLURALS:
        raise InvalidLineError(f"kind: {kind or 'nothing'!r} is not one of {', '.join(PLURALS)}")
    if obj.get("apiVersion") != API_VERSION:
        raise InvalidLineError(f"apiVersion: {obj.get('apiVersion')!r} is not {API_VERSION}")
    _validate(_ObjectMetadata, child(obj, "metadata"), "metadata")
    _validate(SPEC_MODELS[kind], child(obj, "spec"), "spec")
    namespace = text(child(obj, "metadata"), "namespace")
    if not is_namespace(namespace):
        raise InvalidLineError(f"metadata.namespace: {namespace!r} is not a valid namespace name")
    return _record(obj, kind, location, offset)


def _validate(model: type[BaseModel], value: JsonObject, prefix: str) -> None:
    try:
        model.model_validate(value)
    except ValidationError as error:
        first, *_ = error.errors(include_url=False, include_input=False)
        field = ".".join([prefix, *map(str, first["loc"])])
        raise InvalidLineError(f"{field}: {field_detail(first)}") from error


def _record(obj: JsonObject, kind: str, location: str, offset: int) -> ExportRecord:
    metadata, status = child(obj, "metadata"), child(obj, "status")
    plain = ExportRecord(
        key=ObjectKey(kind, text(metadata, "namespace"), text(metadata, "name")),
        location=location,
        offset=offset,
        uid=text(metadata, "uid"),
        created_at=text(metadata, "creationTimestamp"),
        queue=queue_of(obj, kind),
        deleting=bool(text(metadata, "deletionTimestamp")),
    )
    if kind == ARRAY_KIND:
        return _array_record(plain, obj, status)
    return _job_record(plain, obj, status) if kind == JOB_KIND else plain


def _array_record(record: ExportRecord, obj: JsonObject, status: JsonObject) -> ExportRecord:
    phase = _phase(status, ArrayPhase, ArrayPhase.PENDING)
    redrives = integer(child(obj, "spec"), "redrive") > integer(status, "redrives")
    try:
        remaining_items(obj)
    except ValueError as error:
        raise InvalidLineError(f"status: {error}") from error
    return replace(
        record,
        array_phase=phase,
        redriving=phase is ArrayPhase.FAILED and redrives,
        started=integer(status, "next") > 0,
        parent=text(child(child(obj, "metadata"), "labels"), PARENT_LABEL),
    )


def _job_record(record: ExportRecord, obj: JsonObject, status: JsonObject) -> ExportRecord:
    spec, phase = child(obj, "spec"), _phase(status, Phase, Phase.QUEUED)
    labels = child(child(obj, "metadata"), "labels")
    redrives = integer(spec, "redrive") > integer(status, "redrives")
    return replace(
        record,
        phase=phase,
        redriving=phase is Phase.DEAD_LETTER and redrives,
        started=bool(text(status, "firstStartTime")),
        has_checkpoint=status.get("checkpoint") is not None,
        parent=text(labels, PARENT_LABEL),
        in_array=ARRAY_LABEL in labels,
        rerun_requested=integer(spec, "rerun") > integer(status, "reruns"),
    )


def _phase(status: JsonObject, known: type[AnyPhase], default: AnyPhase) -> AnyPhase:
    phase = text(status, "phase", default)
    try:
        return known(phase)
    except ValueError:
        raise InvalidLineError(f"status.phase: {phase!r} is not known to this version") from None


STDIN: Final = "-"
MAX_LINE_BYTES: Final = 16 * 2**20
"""Bytes of a line. The API server takes objects of 3 MiB; JSON may write a character in six."""

MAX_REPORTED_MISTAKES: Final = 10
"""Maximum number of mistakes reported at once."""

_CUT_OFF: Final = (
    "cut off in the middle of this line; head --lines=-1 FILE | … restore - --partial "
    "takes those before it"
)
_GZIP_MAGIC: Final = b"\x1f\x8b"


@contextmanager
def open_export(name: str) -> Iterator[IO[bytes]]:
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
        raise file_error(name, error) from error


@dataclass
class _ExportParser:
    """What was found so far."""

    name: str
    partial: bool
    records: dict[ObjectKey, ExportRecord] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)
    has_header: bool = False
    has_footer: bool = False

    def add_line(self, number: int, offset: int, line: bytes) -> None:
        """Take one line."""
        where = f"{self.name}:{number}"
        try:
            self._add_object(where, offset, _parse_line(line))
        except InvalidLineError as error:
            self.mistakes.append(f"{where}: {error}")

    def _add_object(self, location: str, offset: int, obj: JsonObject) -> None:
        match obj.get("kind"):
            case kind if kind == HEADER_KIND:
                self._check_header(obj)
            case kind if kind == FOOTER_KIND:
                self._check_footer(obj)
            case _:
                self._add_record(parse_record(obj, location, offset))

    def _check_header(self, obj: JsonObject) -> None:
        if integer(obj, "format") > FORMAT:
            version = text(obj, "version", "unknown")
            raise InvalidLineError(
                f"format: written by a newer version ({version}); restore with it"
            )
        self.has_header = True

    def _check_footer(self, obj: JsonObject) -> None:
        self.has_footer = True
        found = Counter(key.kind for key in self.records)
        declared = {kind: count for kind, count in child(obj, "counts").items() if count}
        if not (self.partial or self.mistakes) and declared != dict(found):
            raise InvalidLineError(
                f"counts: {dict(declared)} were written and {dict(found)} are here; "
                "pass --partial to restore what is here"
            )

    def _add_record(self, record: ExportRecord) -> None:
        if record.key in self.records:
            kind, namespace, name = record.key
            raise InvalidLineError(f"metadata.name: {kind} {namespace}/{name} occurs twice")
        self.records[record.key] = record

    def contents(self) -> ExportContents:
        """Return what the file holds; raises BrokenExportError."""
        if not (self.partial or self.has_header or self.mistakes):
            self.mistakes.append(
                f"{self.name}:1: kind: not the {HEADER_KIND} of an export; "
                "pass --partial to restore a part of one"
            )
        elif not (self.partial or self.has_footer or self.mistakes):
            self.mistakes.append(
                f"{self.name}: it has no {FOOTER_KIND} at its end, so it was cut off; "
                "pass --partial to restore what is there"
            )
        if self.mistakes:
            more = len(self.mistakes) - MAX_REPORTED_MISTAKES
            rest = [f"… and {more} more"] if more > 0 else []
            raise BrokenExportError("\n".join([*self.mistakes[:MAX_REPORTED_MISTAKES], *rest]))
        return ExportContents(self.name, tuple(self.records.values()))


def read_export(stream: IO[bytes], name: str, *, partial: bool) -> ExportContents:
    """Return what the file holds; raises BrokenExportError with a line for each mistake."""
    reading, offset = _ExportParser("stdin" if name == STDIN else name, partial), 0
    for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), start=1):
        if number == 1 and line.startswith(_GZIP_MAGIC):
            raise BrokenExportError(f"{name}: compressed; gunzip < FILE | … restore - reads it")
        if len(line) > MAX_LINE_BYTES:
            raise BrokenExportError(
                f"{reading.name}:{number}: more than {MAX_LINE_BYTES >> 20} MiB in one line, "
                "which exceeds any object of an API server; is it an export?"
            )
        if line.strip():
            reading.add_line(number, offset, line)
        offset += len(line)
    return reading.contents()


def read_object(stream: IO[bytes], record: ExportRecord) -> JsonObject:
    """Return the object of a record, whole."""
    stream.seek(record.offset)
    return _parse_line(stream.readline(MAX_LINE_BYTES))


def _parse_line(line: bytes) -> JsonObject:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        problem = f"not JSON: {error}" if line.endswith(b"\n") else _CUT_OFF
        raise InvalidLineError(problem) from error
    if not isinstance(value, dict):
        raise InvalidLineError("not a JSON object")
    return as_object(value)
