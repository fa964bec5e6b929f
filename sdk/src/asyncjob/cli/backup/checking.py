"""Whether a line of a file is what it has to be, told with the field at fault. Pure."""

from dataclasses import replace
from typing import Final

from pydantic import BaseModel, ValidationError

from asyncjob.cli.backup.choosing import queue_of
from asyncjob.cli.backup.contents import Key, Record
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

SPECS: Final[dict[str, type[BaseModel]]] = {
    QUEUE_KIND: AsyncQueueSpec,
    CRON_JOB_KIND: AsyncCronJobSpec,
    JOB_KIND: AsyncJobSpec,
}


class WrongLineError(ValueError):
    """A line is not what it has to be; the message names the field."""


class _Metadata(BaseModel):
    name: ObjectName
    namespace: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def checked(obj: JsonObject, where: str, offset: int) -> Record:
    """Return what is to be known of the object of a line; raises WrongLineError."""
    kind = text(obj, "kind")
    if kind not in PLURALS:
        raise WrongLineError(f"kind: {kind or 'nothing'!r} is none of {', '.join(PLURALS)}")
    if obj.get("apiVersion") != API_VERSION:
        raise WrongLineError(f"apiVersion: {obj.get('apiVersion')!r} is not {API_VERSION}")
    _validated(_Metadata, child(obj, "metadata"), "metadata")
    _validated(SPECS[kind], child(obj, "spec"), "spec")
    namespace = text(child(obj, "metadata"), "namespace")
    if not is_namespace(namespace):
        raise WrongLineError(f"metadata.namespace: {namespace!r} is no name of a namespace")
    return _record(obj, kind, where, offset)


def _validated(model: type[BaseModel], value: JsonObject, prefix: str) -> None:
    try:
        model.model_validate(value)
    except ValidationError as error:
        first, *_ = error.errors(include_url=False, include_context=False, include_input=False)
        field = ".".join([prefix, *map(str, first["loc"])])
        raise WrongLineError(f"{field}: {first['msg']}") from error


def _record(obj: JsonObject, kind: str, where: str, offset: int) -> Record:
    metadata, status = child(obj, "metadata"), child(obj, "status")
    plain = Record(
        key=Key(kind, text(metadata, "namespace"), text(metadata, "name")),
        where=where,
        offset=offset,
        uid=text(metadata, "uid"),
        created=text(metadata, "creationTimestamp"),
        queue=queue_of(obj, kind),
        deleting=bool(text(metadata, "deletionTimestamp")),
    )
    return _of_job(plain, obj, status) if kind == JOB_KIND else plain


def _of_job(plain: Record, obj: JsonObject, status: JsonObject) -> Record:
    spec, phase = child(obj, "spec"), _phase(status)
    redrives = integer(spec, "redrive") > integer(status, "redrives")
    return replace(
        plain,
        phase=phase,
        redriving=phase is Phase.DEAD_LETTER and redrives,
        begun=bool(text(status, "firstStartTime")),
        checkpoint=status.get("checkpoint") is not None,
        parent=text(child(child(obj, "metadata"), "labels"), PARENT_LABEL),
        wants_rerun=integer(spec, "rerun") > integer(status, "reruns"),
    )


def _phase(status: JsonObject) -> Phase:
    said = text(status, "phase", Phase.QUEUED)
    try:
        return Phase(said)
    except ValueError:
        raise WrongLineError(f"status.phase: {said!r} is none that this version knows") from None
