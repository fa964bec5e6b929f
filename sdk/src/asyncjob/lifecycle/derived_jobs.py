"""Jobs that are created from a cron job or as a rerun: their names and the rerun's spec.

The names follow from what asked for the job, so that the API server itself refuses to create one
twice and the name is known before the job exists.
"""

import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from asyncjob.json_types import Json, JsonObject, child, text
from asyncjob.names import API_VERSION, JOB_KIND, MAX_NAME_LENGTH
from asyncjob.shards import shard_label

MAX_LABEL_LENGTH: Final = 63
_DIGEST_LENGTH: Final = 10
_RUN_SUFFIX: Final = re.compile(r"-([0-9]{8}t[0-9]{4}z|t[1-9][0-9]*)\Z")


def run_name(cron: str, time: int) -> str:
    """Return the name of the run of a scheduled time: `nightly-20261121t0300z`."""
    return _suffixed(cron, f"-{datetime.fromtimestamp(time, UTC):%Y%m%dt%H%Mz}")


def trigger_name(cron: str, number: int) -> str:
    """Return the name of the run of a trigger: `nightly-t4`."""
    return _suffixed(cron, f"-t{number}")


def is_run_name(name: str, cron: str) -> bool:
    """Return whether a job's name is one that the cron job gives its runs."""
    suffix = _RUN_SUFFIX.search(name)
    return suffix is not None and name == _suffixed(cron, suffix.group())


def rerun_name(job: str, number: int) -> str:
    """Return the name of a rerun: `report-r1`."""
    return _suffixed(job, f"-r{number}")


def cron_label_value(cron: str) -> str:
    """Return the cron job's name as a label takes it."""
    return cron if len(cron) <= MAX_LABEL_LENGTH else _truncate_name(cron, MAX_LABEL_LENGTH)


def _suffixed(name: str, suffix: str) -> str:
    room = MAX_NAME_LENGTH - len(suffix)
    return (name if len(name) <= room else _truncate_name(name, room)) + suffix


def _truncate_name(name: str, max_length: int) -> str:
    """Return the name cut, and told by a digest from others that begin like it."""
    digest = sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: max_length - _DIGEST_LENGTH - 1].rstrip('-.')}-{digest}"


RERUN_FIELDS: Final = (
    "type",
    "payload",
    "payloadFrom",
    "request",
    "queue",
    "priority",
    "queueTimeoutSeconds",
    "deadlineSeconds",
    "executionTimeoutSeconds",
    "leaseDurationSeconds",
    "cancelGraceSeconds",
    "retryPolicy",
    "concurrencyKey",
    "ttlSecondsAfterFinished",
)
"""What a rerun takes from its original: no keys, times, dependencies, trace, controls.

Its deadline counts from its own creation.
"""


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
        "metadata": {
            "name": name,
            "namespace": text(meta, "namespace"),
            "labels": shard_label(name),
        },
        "spec": rerun_spec(spec, name=text(meta, "name"), uid=text(meta, "uid")),
    }


def is_rerun_of(candidate: JsonObject, original: JsonObject) -> bool:
    """Return whether the existing job is the rerun that was to be created."""
    origin = child(child(candidate, "spec"), "rerunOf")
    return text(origin, "uid") == text(child(original, "metadata"), "uid")
