"""Builds the manifest of an array that a handler submits: `job.map("thumb", rows)`. Pure.

Its name, like those of child jobs, follows from the UID of its parent, so that a parent that runs
again finds the array that it has submitted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from asyncjob.app.child_manifest import (
    ChildManifest,
    ParentJob,
    child_metadata,
    derived_name,
    retry_json,
)
from asyncjob.app.errors import SubmitRefusedError, describe_validation_error
from asyncjob.free_json import FreeJsonError, TooManyBytesError, digest, normalize
from asyncjob.json_types import Json, JsonObject
from asyncjob.models.array import (
    MAX_INLINE_BYTES,
    MAX_SHARED_PAYLOAD_BYTES,
    AsyncArraySpec,
)
from asyncjob.models.base import RetryPolicy
from asyncjob.names import API_VERSION, ARRAY_KIND

ARRAY_TTL_SECONDS: Final = 7 * 24 * 3600
"""How long an array that a handler has submitted is kept after its end, unless it says otherwise;
while the job that has submitted it is unfinished, it is kept in any case."""

_HOW_IT_RUNS: Final = ("chunkSize", "parallelism", "ttlSecondsAfterFinished")
"""May differ as the parent runs again, after an upgrade of its app: they are no content."""

_TOO_LARGE_ADVICE: Final = {
    "the items": "put the items into a file, and give its URI",
    "the payload": "let the items say where the rest is",
}

Items = int | str | Sequence[object]
"""The items of an array: how many, the URI of a file, or the items themselves."""


@dataclass(frozen=True, slots=True)
class ChildArrayOptions:
    """What a handler may say about an array; None means that it says nothing. Times: seconds."""

    key: str | None = None
    name: str | None = None
    payload: object = None
    queue: str | None = None
    priority: int | None = None
    chunk_size: int | None = None
    parallelism: int | None = None
    item_retries: int | None = None
    item_timeout: int | None = None
    results: str | None = None
    max_failed: int | None = None
    max_failed_percent: int | None = None
    timeout: int | None = None
    retry: RetryPolicy | None = None
    ttl: int = ARRAY_TTL_SECONDS


def build_child_array_manifest(
    parent: ParentJob, type_: str, items: Items, options: ChildArrayOptions
) -> ChildManifest:
    """Return what to create; raises SubmitRefusedError that names what cannot be right."""
    given = _given_fields(type_, items, options)
    what = {field: value for field, value in given.items() if field not in _HOW_IT_RUNS}
    content = digest(["content", {"kind": ARRAY_KIND, **what}])
    name = options.name or derived_name(parent, options.key, what)
    spec: dict[str, Json] = {"queue": parent.queue, "priority": parent.priority, **given}
    _check_spec(name, spec)
    body: JsonObject = {
        "apiVersion": API_VERSION,
        "kind": ARRAY_KIND,
        "metadata": child_metadata(parent, name, content),
        "spec": spec,
    }
    return ChildManifest(name, content, body, options.key, ARRAY_KIND)


def _given_fields(type_: str, items: Items, options: ChildArrayOptions) -> dict[str, Json]:
    payload, most = options.payload, MAX_SHARED_PAYLOAD_BYTES
    given: dict[str, Json] = {
        "type": type_,
        "items": _items_json(type_, items),
        "payload": None if payload is None else _checked(type_, "the payload", payload, most),
        "queue": options.queue,
        "priority": options.priority,
        "chunkSize": options.chunk_size,
        "parallelism": options.parallelism,
        "itemRetries": options.item_retries,
        "itemTimeoutSeconds": options.item_timeout,
        "results": None if options.results is None else {"uri": options.results},
        "maxFailed": options.max_failed,
        "maxFailedPercent": options.max_failed_percent,
        "executionTimeoutSeconds": options.timeout,
        "retryPolicy": retry_json(options.retry),
        "ttlSecondsAfterFinished": options.ttl,
    }
    return {name: value for name, value in given.items() if value is not None}


def _items_json(type_: str, items: Items) -> JsonObject:
    if isinstance(items, str):
        return {"from": {"uri": items}}
    if isinstance(items, int) and not isinstance(items, bool):
        return {"count": items}
    # A set has another order in each process, and with it the array another name.
    if not isinstance(items, Sequence) or isinstance(items, bytes | bytearray):
        raise SubmitRefusedError(
            f"array of type {type_!r}: the items are a {type(items).__name__}: give a list, a "
            "number, or the URI of a file"
        )
    return {"inline": _checked(type_, "the items", list(items), MAX_INLINE_BYTES)}


def _checked(type_: str, what: str, value: object, most: int) -> Json:
    try:
        return normalize(value, what=what, max_bytes=most)
    except FreeJsonError as error:
        is_large = isinstance(error, TooManyBytesError)
        way_out = f"; {_TOO_LARGE_ADVICE[what]}" if is_large else ""
        raise SubmitRefusedError(f"array of type {type_!r}: {error}{way_out}") from error


def _check_spec(name: str, spec: Mapping[str, Json]) -> None:
    try:
        AsyncArraySpec.model_validate(spec)
    except ValidationError as error:
        raise SubmitRefusedError(f"array {name}: {describe_validation_error(error)}") from error
    if "maxFailed" in spec and "maxFailedPercent" in spec:
        raise SubmitRefusedError(f"array {name}: give maxFailed or maxFailedPercent, not both")
