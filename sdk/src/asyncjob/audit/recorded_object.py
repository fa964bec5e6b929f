"""Which part of an object is recorded, and how.

Payloads (those of signals too), results (those of steps too) and checkpoints may be large, secret,
or nested deeper than can be written. Unless they are asked for, a digest stands in their place:
enough to tell whether two are the same.
"""

from collections.abc import Mapping
from typing import Final

from asyncjob.deep_json import is_deeper
from asyncjob.free_json import canonical_json, digest
from asyncjob.json_types import Json, JsonObject, as_object, child, items, text
from asyncjob.names import ARRAYS, CRON_JOBS, JOBS

DIGEST_LENGTH: Final = 32
DIGEST_KEY: Final = "asyncjob.dev/digest"
SIZE_KEY: Final = "asyncjob.dev/bytes"
TOO_DEEP: Final = "nested-too-deeply"

_MAX_LEVELS: Final = 200
"""Levels of free JSON that are digested; the file's own levels come on top."""

_FREE_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "spec": ("payload", "request"),
    "status": ("result", "checkpoint"),
}
_FREE_FIELDS_OF_ENTRIES: Final[Mapping[str, Mapping[str, str]]] = {
    "spec": {"signals": "payload"},
    "status": {"steps": "result"},
}
"""Of what is kept by name or key: which field of each is free JSON."""


def recorded_object(obj: JsonObject, resource: str, *, whole: bool) -> JsonObject:
    """Return what is recorded of an object; `whole`: payloads, results and checkpoints too."""
    metadata = {name: value for name, value in child(obj, "metadata").items() if name != _MANAGED}
    kept: dict[str, Json] = {"metadata": metadata}
    if resource == CRON_JOBS:
        spec = dict(child(obj, "spec"))
        if "jobTemplate" in spec:
            spec["jobTemplate"] = digest_in_place(spec["jobTemplate"])
        return {**kept, "spec": spec, "status": child(obj, "status")}
    if resource == ARRAYS:
        return {**kept, **_recorded_array(obj, whole=whole)}
    for part, fields in _FREE_FIELDS.items():
        value: dict[str, Json] = dict(child(obj, part))
        if resource == JOBS:
            _hide(value, fields, whole=whole)
            for name, field in _FREE_FIELDS_OF_ENTRIES[part].items():
                if name in value:
                    value[name] = _recorded_entries(child(value, name), field, whole=whole)
        kept[part] = value
    return kept


def _recorded_array(obj: JsonObject, *, whole: bool) -> JsonObject:
    spec = dict(child(obj, "spec"))
    source = dict(child(spec, "items"))
    _hide(spec, ("payload",), whole=whole)
    _hide(source, ("inline",), whole=whole)
    return {"spec": {**spec, "items": source}, "status": child(obj, "status")}


def _recorded_entries(entries: JsonObject, field: str, *, whole: bool) -> JsonObject:
    recorded: dict[str, Json] = {}
    for key in entries:
        entry = dict(child(entries, key))
        _hide(entry, (field,), whole=whole)
        recorded[key] = entry
    return recorded


def _hide(value: dict[str, Json], fields: tuple[str, ...], *, whole: bool) -> None:
    """Put digests in the place of fields of free JSON."""
    for name in fields:
        if name in value and (not whole or is_deeper(value[name], _MAX_LEVELS)):
            value[name] = digest_in_place(value[name])


_MANAGED: Final = "managedFields"


def status_written_at(obj: JsonObject) -> str:
    """Return when the API server took the last write of the status; empty where it does not say."""
    entries = map(as_object, items(child(obj, "metadata"), _MANAGED))
    times = [text(entry, "time") for entry in entries if text(entry, "subresource") == "status"]
    return max(times, default="")


def digest_in_place(value: Json) -> JsonObject:
    """Return what stands for a value in the history."""
    if is_deeper(value, _MAX_LEVELS):
        return {DIGEST_KEY: TOO_DEEP}
    return {DIGEST_KEY: value_digest(value), SIZE_KEY: len(canonical_json(value))}


def value_digest(value: Json) -> str:
    """Return what tells whether two values are the same JSON."""
    return digest(value, DIGEST_LENGTH)


def digest_of_recorded(value: Json) -> str:
    """Return the digest of a value as the history has it, in whichever of both forms."""
    stored = text(as_object(value), DIGEST_KEY)
    return stored or value_digest(value)
