"""Manifests as the API server accepts them, and the manifest of a job that a test submits.

They are checked, defaults are filled in, and unknown fields are refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

import orjson
import yaml
from pydantic import BaseModel, ValidationError

from asyncjob.deep_json import encode
from asyncjob.errors import InvalidError
from asyncjob.free_json import normalize
from asyncjob.json_types import Json, JsonObject, as_object, child, text
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models import AsyncJob, AsyncJobSpec, AsyncQueue
from asyncjob.models.array import (
    MAX_INLINE_BYTES,
    MAX_SHARED_PAYLOAD_BYTES,
    AsyncArray,
    AsyncArraySpec,
)
from asyncjob.names import API_VERSION, ARRAY_KIND, JOB_KIND, is_object_name

Manifest = Mapping[str, Any] | str | BaseModel
"""A manifest as a mapping, as YAML or JSON text, or as a model."""

M = TypeVar("M", bound=BaseModel)

_UNPROCESSABLE = 422
_BAD_REQUEST = 400
_NULLABLE_FIELDS = frozenset({"payload", "items", "checkpoint", "result"})


def parse_documents(manifest: Manifest) -> list[JsonObject]:
    """Return the objects of a manifest; raises InvalidError for text that is not YAML."""
    if isinstance(manifest, BaseModel):
        return [manifest.model_dump(mode="json", by_alias=True, exclude_none=True)]
    if not isinstance(manifest, str):
        return [_plain_json(manifest)]
    try:
        found = [document for document in yaml.safe_load_all(manifest) if document is not None]
    except yaml.YAMLError as error:
        raise invalid_error(f"not YAML: {error}", status=_BAD_REQUEST) from error
    return [_plain_json(document) for document in found]


def read_job_manifest(manifest: JsonObject, *, exists: bool = False) -> dict[str, Json]:
    """Return the spec of a job as it is stored; raises InvalidError that names the field.

    `exists` tells a change of a job from a new one: the API server's codes differ.
    """
    return _read_manifest(AsyncJob, manifest, _UNPROCESSABLE if exists else _BAD_REQUEST)


def read_array_manifest(manifest: JsonObject, *, exists: bool = False) -> dict[str, Json]:
    """Return the spec of an array as it is stored; raises InvalidError that names the field."""
    return _read_manifest(AsyncArray, manifest, _UNPROCESSABLE if exists else _BAD_REQUEST)


def read_queue_manifest(manifest: JsonObject) -> dict[str, Json]:
    """Return the spec of a queue as it is stored; raises InvalidError that names the field."""
    return _read_manifest(AsyncQueue, manifest, _BAD_REQUEST)


def invalid_error(message: str, *, status: int = _UNPROCESSABLE) -> InvalidError:
    """Return the error with which the API server refuses an object."""
    return InvalidError(message, status=status, reason="Invalid")


def _read_manifest(model: type[M], manifest: JsonObject, unknown_status: int) -> dict[str, Json]:
    name = text(child(manifest, "metadata"), "name")
    if not is_object_name(name):
        raise invalid_error(f"metadata.name: {name!r} is not a valid name of an object")
    who = f'{model.__name__} "{name}"'
    try:
        read = model.model_validate_json(encode(manifest), strict=True)
    except ValidationError as error:
        raise invalid_error(f"{who} is invalid: {_describe_validation_error(error)}") from error
    known = read.model_dump(mode="json", by_alias=True)
    unknown = list(_unknown_fields(_without_metadata(manifest), known, ""))
    if unknown:
        what = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise invalid_error(f"{who}: strict decoding error: {what}", status=unknown_status)
    return _stored_spec(as_object(known["spec"]), child(manifest, "spec"))


def _without_metadata(manifest: JsonObject) -> JsonObject:
    return {name: value for name, value in manifest.items() if name != "metadata"}


def _unknown_fields(given: Json, known: Json, path: str) -> Iterator[str]:
    """Yield the fields that the model has not taken over."""
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        for name, value in given.items():
            where = f"{path}.{name}" if path else name
            if name not in known:
                yield where
            else:
                yield from _unknown_fields(value, known[name], where)
    elif isinstance(given, list) and isinstance(known, list):
        for index, (one, other) in enumerate(zip(given, known, strict=False)):
            yield from _unknown_fields(one, other, f"{path}[{index}]")


def _stored_spec(known: JsonObject, given: JsonObject) -> dict[str, Json]:
    """Return the known spec without what was not given and has no default."""
    return {
        name: given[name] if name in _NULLABLE_FIELDS else _without_nulls(value)
        for name, value in known.items()
        if value is not None or (name in _NULLABLE_FIELDS and name in given)
    }


def _without_nulls(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _plain_json(document: object) -> JsonObject:
    if not isinstance(document, Mapping):
        raise invalid_error("a manifest is an object", status=_BAD_REQUEST)
    plain: JsonObject = orjson.loads(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS))
    return plain


def _describe_validation_error(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(str(step) for step in item['loc'])}: {item['msg']}" for item in problems
    )


_MAX_PAYLOAD_BYTES = 1024 * 1024
_POSITIONAL_FIELDS = {"type", "payload"}
_SHORT_OPTIONS = {"retry": "retryPolicy", "timeout": "executionTimeoutSeconds"}
_SHORT_JOB_OPTIONS = {**_SHORT_OPTIONS, "deadline": "deadlineSeconds"}
_OPTION_FIELDS = {
    name: field.alias or name
    for name, field in AsyncJobSpec.model_fields.items()
    if name not in _POSITIONAL_FIELDS
} | _SHORT_JOB_OPTIONS
_ARRAY_OPTION_FIELDS = {
    name: field.alias or name
    for name, field in AsyncArraySpec.model_fields.items()
    if name not in {"type", "items", "payload"}
} | {**_SHORT_OPTIONS, "item_timeout": "itemTimeoutSeconds"}


def build_job_manifest(
    name: str, type_: str, payload: object, options: Mapping[str, object]
) -> JsonObject:
    """Return the manifest of a job.

    `options` are fields of its spec in Python's spelling; `retry`, `timeout` and `deadline` are
    short for retry_policy, execution_timeout_seconds and deadline_seconds. Raises TypeError for any
    other.
    """
    spec: dict[str, Json] = {"type": type_}
    if payload is not None:
        spec["payload"] = normalize(payload, what="the payload", max_bytes=_MAX_PAYLOAD_BYTES)
    return _manifest(JOB_KIND, name, spec | _option_fields("a job", options, _OPTION_FIELDS))


def build_array_manifest(
    name: str,
    type_: str,
    items: int | Iterable[object],
    payload: object,
    options: Mapping[str, object],
) -> JsonObject:
    """Return the manifest of an array of a number of items, or of a list of them.

    `options` are as those of a job; `item_timeout` is short for item_timeout_seconds. Raises
    TypeError for any other, and for items that are neither.
    """
    if isinstance(items, str | bytes | bool) or not isinstance(items, int | Iterable):
        raise TypeError(f"{items!r} is neither a number of items nor a list of them")
    source: dict[str, Json] = {"count": items} if isinstance(items, int) else {}
    if not isinstance(items, int):
        what, limit = "items.inline", MAX_INLINE_BYTES
        source["inline"] = normalize([*items], what=what, max_bytes=limit)
    spec: dict[str, Json] = {"type": type_, "items": source}
    if payload is not None:
        limit = MAX_SHARED_PAYLOAD_BYTES
        spec["payload"] = normalize(payload, what="the payload", max_bytes=limit)
    fields = _option_fields("an array", options, _ARRAY_OPTION_FIELDS)
    return _manifest(ARRAY_KIND, name, spec | fields)


def _option_fields(
    what: str, options: Mapping[str, object], fields: Mapping[str, str]
) -> dict[str, Json]:
    """Return the fields of a spec that options stand for; raises TypeError for an unknown one."""
    unknown = sorted(set(options) - set(fields))
    if unknown:
        raise TypeError(f"{what} has no {', '.join(unknown)}; it has {', '.join(sorted(fields))}")
    given = {name: value for name, value in options.items() if value is not None}
    return {fields[name]: _option_json(name, value) for name, value in given.items()}


def _manifest(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _option_json(name: str, value: object) -> Json:
    if name == "depends_on" and isinstance(value, list | tuple):
        return [{"name": one} if isinstance(one, str) else _option_json("", one) for one in value]
    if isinstance(value, datetime):
        return format_timestamp(value)
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True, exclude_none=True)  # type: ignore[no-any-return]  # a model of ours
    return normalize(value, what=name)
