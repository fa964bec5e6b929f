"""Whether a line of a file is what it has to be, told with the field at fault. Pure."""

from dataclasses import replace
from typing import Final

from pydantic import BaseModel, ValidationError

from asyncjob.cli.backup.choosing import queue_of
from asyncjob.cli.backup.contents import ExportRecord, ObjectKey
from asyncjob.cli.backup.format import PLURALS
from asyncjob.json_types import JsonObject, child, integer, text
from asyncjob.lifecycle.phases import Phase
from asyncjob.models.base import ObjectName
from asyncjob.models.cron import AsyncCronJobSpec
from asyncjob.models.queue import AsyncQueueSpec
from asyncjob.models.spec import AsyncJobSpec
from asyncjob.names import (
    API_VERSION,
    CRON_JOB_KIND,
    JOB_KIND,
    PARENT_LABEL,
    QUEUE_KIND,
    is_namespace,
)

SPEC_MODELS: Final[dict[str, type[BaseModel]]] = {
    QUEUE_KIND: AsyncQueueSpec,
    CRON_JOB_KIND: AsyncCronJobSpec,
    JOB_KIND: AsyncJobSpec,
}


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
        raise InvalidLineError(f"kind: {kind or 'nothing'!r} is none of {', '.join(PLURALS)}")
    if obj.get("apiVersion") != API_VERSION:
        raise InvalidLineError(f"apiVersion: {obj.get('apiVersion')!r} is not {API_VERSION}")
    _validate(_ObjectMetadata, child(obj, "metadata"), "metadata")
    _validate(SPEC_MODELS[kind], child(obj, "spec"), "spec")
    namespace = text(child(obj, "metadata"), "namespace")
    if not is_namespace(namespace):
        raise InvalidLineError(f"metadata.namespace: {namespace!r} is no name of a namespace")
    return _record(obj, kind, location, offset)


def _validate(model: type[BaseModel], value: JsonObject, prefix: str) -> None:
    try:
        model.model_validate(value)
    except ValidationError as error:
        first, *_ = error.errors(include_url=False, include_context=False, include_input=False)
        field = ".".join([prefix, *map(str, first["loc"])])
        raise InvalidLineError(f"{field}: {first['msg']}") from error


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
    return _job_record(plain, obj, status) if kind == JOB_KIND else plain


def _job_record(record: ExportRecord, obj: JsonObject, status: JsonObject) -> ExportRecord:
    spec, phase = child(obj, "spec"), _phase(status)
    redrives = integer(spec, "redrive") > integer(status, "redrives")
    return replace(
        record,
        phase=phase,
        redriving=phase is Phase.DEAD_LETTER and redrives,
        started=bool(text(status, "firstStartTime")),
        has_checkpoint=status.get("checkpoint") is not None,
        parent=text(child(child(obj, "metadata"), "labels"), PARENT_LABEL),
        rerun_requested=integer(spec, "rerun") > integer(status, "reruns"),
    )


def _phase(status: JsonObject) -> Phase:
    said = text(status, "phase", Phase.QUEUED)
    try:
        return Phase(said)
    except ValueError:
        raise InvalidLineError(f"status.phase: {said!r} is none that this version knows") from None
