"""What of a job is kept in memory: all that lists show and select by, and no more."""

from typing import Final

from asyncjob.json_types import Json, JsonObject, child

_META: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "labels")
_HEAVY_SPEC: Final = frozenset({"payload", "request"})
_HEAVY_STATUS: Final = frozenset({"checkpoint", "result", "history", "conditions"})
_NOT_KEPT: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


def lean(obj: JsonObject) -> JsonObject:
    """Return the job without payload, request, checkpoint, result and history."""
    meta = child(obj, "metadata")
    kept: dict[str, Json] = {name: meta[name] for name in _META if name in meta}
    if "annotations" in meta:
        kept["annotations"] = _without(child(meta, "annotations"), _NOT_KEPT)
    return {
        "metadata": kept,
        "spec": _without(child(obj, "spec"), _HEAVY_SPEC),
        "status": _without(child(obj, "status"), _HEAVY_STATUS),
    }


def _without(obj: JsonObject, names: frozenset[str]) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in names}
