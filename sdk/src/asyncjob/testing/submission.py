"""What a test submits, as a manifest."""

from collections.abc import Mapping
from datetime import datetime

from asyncjob.free_json import normalize
from asyncjob.json_types import Json, JsonObject
from asyncjob.lifecycle.timestamps import format_timestamp
from asyncjob.models import AsyncJobSpec
from asyncjob.names import API_VERSION, JOB_KIND

_MAX_PAYLOAD_BYTES = 1024 * 1024
_POSITIONAL_FIELDS = {"type", "payload"}
_OPTION_FIELDS = {
    name: field.alias or name
    for name, field in AsyncJobSpec.model_fields.items()
    if name not in _POSITIONAL_FIELDS
} | {"retry": "retryPolicy", "timeout": "executionTimeoutSeconds"}


def build_job_manifest(
    name: str, type_: str, payload: object, options: Mapping[str, object]
) -> JsonObject:
    """Return the manifest of a job.

    `options` are fields of its spec in Python's spelling; `retry` and `timeout` are short for
    retry_policy and execution_timeout_seconds. Raises TypeError for any other.
    """
    unknown = sorted(set(options) - set(_OPTION_FIELDS))
    if unknown:
        raise TypeError(
            f"a job has no {', '.join(unknown)}; it has {', '.join(sorted(_OPTION_FIELDS))}"
        )
    spec: dict[str, Json] = {"type": type_}
    if payload is not None:
        spec["payload"] = normalize(payload, what="the payload", max_bytes=_MAX_PAYLOAD_BYTES)
    given = {name: value for name, value in options.items() if value is not None}
    spec |= {_OPTION_FIELDS[name]: _option_json(name, value) for name, value in given.items()}
    return {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {"name": name},
        "spec": spec,
    }


def _option_json(name: str, value: object) -> Json:
    if isinstance(value, datetime):
        return format_timestamp(value)
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True, exclude_none=True)  # type: ignore[no-any-return]  # a model of ours
    return normalize(value, what=name)
