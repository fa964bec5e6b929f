"""A decided change of status, and the bodies that carry it to the API server.

A `Move` names the top-level fields of `status` that are replaced whole. What it adds to the
history is rendered against the status that is current when it is written, because whoever decides
does not carry the history around.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncjob.json_types import Json, JsonObject, integer, items
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase, Reason
from asyncjob.lifecycle.policy import MAX_DURATION_SECONDS
from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.lifecycle.view import JobView

MAX_HISTORY_ENTRIES = 20
MAX_MESSAGE_LENGTH = 1024
MAX_HISTORY_MESSAGE_LENGTH = 256

StatusFields = dict[str, Json]
"""Top-level fields of `status` → new value; None removes the field."""

_CONDITION_TYPES = {
    Phase.SUCCEEDED: "Complete",
    Phase.DEAD_LETTER: "Failed",
    Phase.CANCELLED: "Cancelled",
}


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A change of phase, decided and not yet written."""

    target: Phase
    reason: Reason | None
    fields: Mapping[str, Json]
    history_entry: JsonObject


def truncate(message: str, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """Return the message within the schema's limit, with a mark where it was cut."""
    return message if len(message) <= limit else message[: limit - 1] + "…"


def change_phase(
    job: JobView, target: Phase, *, now: str, reason: Reason | None = None, message: str = ""
) -> PhaseChange:
    """Return the change of phase with what every change of phase carries.

    `now` is RFC 3339 text. Leaving Running drops the lease and the admission; finishing sets the
    completion time and the condition that `kubectl wait` looks at.
    """
    fields: StatusFields = {
        "phase": target.value,
        "reason": reason.value if reason else None,
        "message": truncate(message) if message else None,
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    }
    if job.phase is Phase.RUNNING:
        fields |= {"lease": None, "admitted": None}
    if job.phase is Phase.RETRYING:
        fields |= {"nextAttemptTime": None, "retryDelaySeconds": None}
    if target in FINISHED_PHASES:
        fields |= {"completionTime": now, "conditions": [_condition(target, reason, message, now)]}
        fields |= _duration_fields(job, now)
    elif job.finished:
        fields |= {"completionTime": None, "durationSeconds": None, "conditions": None}
    return PhaseChange(target, reason, fields, _history_entry(job, target, reason, message, now))


def _duration_fields(job: JobView, now: str) -> StatusFields:
    """Return the time from the first start, a year at most.

    Two machines' clocks may put the end before the start, and a dead letter may be redriven years
    after it: what the schema refuses would keep the job from ever finishing.
    """
    took = seconds_between(job.first_start_time, now) if job.first_start_time else None
    if took is None:
        return {}
    return {"durationSeconds": round(min(max(took, 0.0), MAX_DURATION_SECONDS), 3)}


def _condition(target: Phase, reason: Reason | None, message: str, now: str) -> StatusFields:
    return {
        "type": _CONDITION_TYPES[target],
        "status": "True",
        "reason": reason.value if reason else target.value,
        "message": truncate(message),
        "lastTransitionTime": now,
    }


def _history_entry(
    job: JobView, target: Phase, reason: Reason | None, message: str, now: str
) -> JsonObject:
    entry: StatusFields = {"time": now, "phase": target.value, "attempt": job.attempt}
    if reason:
        entry["reason"] = reason.value
    if message:
        entry["message"] = truncate(message, MAX_HISTORY_MESSAGE_LENGTH)
    if job.phase is Phase.RUNNING and job.lease:
        entry["worker"] = job.lease.worker
        entry["startTime"] = job.start_time or now
    return entry


def status_fields(change: PhaseChange, status: JsonObject) -> StatusFields:
    """Return all fields the write replaces, the history of the current status extended."""
    history = [*items(status, "history"), change.history_entry]
    omitted = len(history) - MAX_HISTORY_ENTRIES
    fields: StatusFields = {**change.fields, "history": history[-MAX_HISTORY_ENTRIES:]}
    if omitted > 0:
        fields["historyOmitted"] = integer(status, "historyOmitted") + omitted
    return fields


def status_merge_patch(fields: StatusFields, resource_version: str) -> JsonObject:
    """Return a merge-patch that takes effect only on the given version of the object."""
    return {"metadata": {"resourceVersion": resource_version}, "status": fields}


def status_json_patch(fields: StatusFields, status: JsonObject) -> list[JsonObject]:
    """Return a JSON Patch that replaces each field whole; `status` tells what there is to remove.

    A merge-patch would merge free JSON into what was there and drop its nulls.
    """
    operations: list[JsonObject] = []
    for name, value in fields.items():
        path = f"/status/{name}"
        if value is not None:
            operations.append({"op": "add", "path": path, "value": value})
        elif name in status:
            operations.append({"op": "remove", "path": path})
    return operations
