"""Builds the manifest of a child job.

Its name, its content and the fingerprint by which it is recognised. Pure.

A parent that runs again submits again. The names of its children follow from its UID, so that the
API server refuses to create them twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from pydantic import ValidationError

from asyncjob.app.errors import SubmitRefusedError, describe_validation_error
from asyncjob.free_json import FreeJsonError, TooManyBytesError, digest, normalize
from asyncjob.json_types import Json, JsonObject, child
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models.base import RetryPolicy
from asyncjob.models.job import AsyncJobSpec, Dependency
from asyncjob.names import (
    API_VERSION,
    ARRAY_KIND,
    CONTENT_ANNOTATION,
    JOB_KIND,
    PARENT_LABEL,
    PARENT_NAME_ANNOTATION,
)
from asyncjob.shards import shard_label

MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""Largest payload of a child: the store takes about half as much again for the whole job."""

_NAME_PREFIX_LENGTH: Final = 40
_TIME_FIELDS: Final = ("notBefore", "notAfter", "deadlineSeconds")
"""Mostly counted from now, so they differ as the parent runs again: they are no content."""


class HasName(Protocol):
    """What has the name of a job, or of an array by its `kind`: a Child, a Submission."""

    @property
    def name(self) -> str:
        """The name."""


DependsOn = Sequence[str | HasName | Dependency]


@dataclass(frozen=True, slots=True)
class ParentJob:
    """The job that submits; children go to its queue and priority unless told otherwise."""

    name: str
    uid: str
    queue: str
    priority: int = 0
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """What a handler may say about a child; None means that it says nothing."""

    key: str | None = None
    name: str | None = None
    queue: str | None = None
    priority: int | None = None
    retry: RetryPolicy | None = None
    timeout: int | None = None
    not_before: datetime | str | None = None
    not_after: datetime | str | None = None
    deadline: int | None = None
    depends_on: DependsOn = ()
    concurrency_key: str | None = None
    deduplication_id: str | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class ChildManifest:
    """A child job, or an array, to create.

    `fingerprint` is a hash of what it is, but for times and its deadline; `key` as given.
    """

    name: str
    fingerprint: str
    manifest: JsonObject
    key: str | None
    kind: str = JOB_KIND


def build_child_manifest(
    parent: ParentJob, type_: str, payload: object, options: ChildOptions
) -> ChildManifest:
    """Return what to create; raises SubmitRefusedError that names what cannot be right."""
    given = _given_fields(type_, payload, options)
    content = digest(["content", {name: given[name] for name in given if name not in _TIME_FIELDS}])
    name = options.name or derived_name(parent, options.key, given)
    spec = {**_inherited_fields(parent), **given, **_trace_fields(parent, options)}
    _check_spec(name, spec)
    metadata = child_metadata(parent, name, content)
    labels: JsonObject = {**child(metadata, "labels"), **shard_label(name)}
    body: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {**metadata, "labels": labels},
        "spec": spec,
    }
    return ChildManifest(name, content, body, options.key)


def called_child(kind: str) -> str:
    """Return what people call a child of this kind: `child`, or `array`."""
    return "array" if kind == ARRAY_KIND else "child"


def with_article(kind: str) -> str:
    """Return what people call an object of this kind: `a job`, `an array`."""
    return "an array" if kind == ARRAY_KIND else "a job"


def child_metadata(parent: ParentJob, name: str, fingerprint: str) -> JsonObject:
    """Return the metadata by which a child is known as this parent's, and found again."""
    return {
        "name": name,
        "labels": {PARENT_LABEL: parent.uid},
        "annotations": {PARENT_NAME_ANNOTATION: parent.name, CONTENT_ANNOTATION: fingerprint},
    }


def _given_fields(type_: str, payload: object, options: ChildOptions) -> dict[str, Json]:
    """Return the fields of `spec` that the handler itself has given."""
    given: dict[str, Json] = {
        "type": type_,
        "payload": _payload_json(type_, payload),
        "queue": options.queue,
        "priority": options.priority,
        "retryPolicy": retry_json(options.retry),
        "executionTimeoutSeconds": options.timeout,
        "notBefore": _time_text(options.not_before),
        "notAfter": _time_text(options.not_after),
        "deadlineSeconds": options.deadline,
        "dependsOn": [_dependency_json(one) for one in options.depends_on] or None,
        "concurrencyKey": options.concurrency_key,
        "deduplicationId": options.deduplication_id,
    }
    return {name: value for name, value in given.items() if value is not None}


def _inherited_fields(parent: ParentJob) -> dict[str, Json]:
    return {"queue": parent.queue, "priority": parent.priority}


def _trace_fields(parent: ParentJob, options: ChildOptions) -> dict[str, Json]:
    traceparent = options.traceparent or parent.traceparent
    return {"traceparent": traceparent} if traceparent else {}


def _payload_json(type_: str, payload: object) -> Json:
    try:
        return normalize(payload, what="the payload", max_bytes=MAX_PAYLOAD_BYTES)
    except FreeJsonError as error:
        is_large = isinstance(error, TooManyBytesError)
        way_out = "; hand large data over by a reference to it" if is_large else ""
        raise SubmitRefusedError(f"child of type {type_!r}: {error}{way_out}") from error


def retry_json(retry: RetryPolicy | None) -> Json:
    """Return a retry policy as a spec has it; None for none."""
    dumped: Mapping[str, Json] | None = (
        retry.model_dump(mode="json", by_alias=True, exclude_none=True) if retry else None
    )
    return dumped


def _time_text(time: datetime | str | None) -> str | None:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise SubmitRefusedError(f"{time!r} has no time zone: datetime.now(UTC) has one")
    return format_timestamp(time)


def _dependency_json(dependency: str | HasName | Dependency) -> Json:
    if isinstance(dependency, Dependency):
        dumped: Mapping[str, Json] = dependency.model_dump(
            mode="json", by_alias=True, exclude_none=True
        )
        return dumped
    if isinstance(dependency, str):
        return {"name": dependency}
    is_array = getattr(dependency, "kind", JOB_KIND) == ARRAY_KIND
    return {"array" if is_array else "name": dependency.name}


def derived_name(parent: ParentJob, key: str | None, given: Mapping[str, Json]) -> str:
    """Return the name of a child that is given none: by its key, or else by what it is."""
    by: Json = ["key", key] if key is not None else ["content", given]
    prefix = parent.name[:_NAME_PREFIX_LENGTH].rstrip(".-")
    return f"{prefix}-{digest([parent.uid, by])}"


def _check_spec(name: str, spec: Mapping[str, Json]) -> None:
    try:
        AsyncJobSpec.model_validate(spec)
    except ValidationError as error:
        raise SubmitRefusedError(f"child {name}: {describe_validation_error(error)}") from error
