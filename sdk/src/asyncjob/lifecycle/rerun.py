"""The job that a rerun creates."""

from typing import Final

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.names import API_VERSION, JOB_KIND

RERUN_FIELDS: Final = (
    "type",
    "payload",
    "payloadFrom",
    "request",
    "queue",
    "priority",
    "queueTimeoutSeconds",
    "executionTimeoutSeconds",
    "leaseDurationSeconds",
    "cancelGraceSeconds",
    "retryPolicy",
    "concurrencyKey",
    "ttlSecondsAfterFinished",
)
"""What a rerun shares with its original. Not: keys, deadlines, dependencies, trace and wishes."""


def rerun_spec(spec: JsonObject, *, name: str, uid: str) -> JsonObject:
    """Return the spec of a job that does again what the job of this name and UID did."""
    taken: dict[str, Json] = {field: spec[field] for field in RERUN_FIELDS if field in spec}
    return {**taken, "rerunOf": {"name": name, "uid": uid}}


def rerun_manifest(original: JsonObject, name: str) -> JsonObject:
    """Return the new job, linked to the original and independent of it."""
    meta, spec = child(original, "metadata"), child(original, "spec")
    return {
        "apiVersion": API_VERSION,
        "kind": JOB_KIND,
        "metadata": {"name": name, "namespace": text(meta, "namespace")},
        "spec": rerun_spec(spec, name=text(meta, "name"), uid=text(meta, "uid")),
    }


def is_rerun_of(candidate: JsonObject, original: JsonObject) -> bool:
    """Return whether the existing job is the rerun that was to be created."""
    origin = child(child(candidate, "spec"), "rerunOf")
    return text(origin, "uid") == text(child(original, "metadata"), "uid")
