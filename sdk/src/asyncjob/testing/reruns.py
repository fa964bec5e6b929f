"""The job that a rerun creates: it does the same again, free of what tied the original in time."""

from typing import Final

from asyncjob.json_types import Json, JsonObject
from asyncjob.testing.store import Record

_TAKEN_ALONG: Final = (
    "type",
    "payload",
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


def rerun_spec(original: Record) -> JsonObject:
    """Return the spec of a job that does the same again."""
    job = original.view
    spec: dict[str, Json] = {
        name: original.spec[name] for name in _TAKEN_ALONG if name in original.spec
    }
    return {**spec, "rerunOf": {"name": job.name, "uid": job.uid}}
