"""A decided change of status, and the bodies that carry it to the API server.

A `Move` names the top-level fields of `status` that are replaced whole. What it adds to the
history is rendered against the status that is current when it is written, because whoever decides
does not carry the history around.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncjob.json_types import Json, JsonObject, integer, items
from asyncjob.lifecycle.phases import FINISHED, Phase, Reason
from asyncjob.lifecycle.policy import LONGEST_SECONDS
from asyncjob.lifecycle.timestamps import seconds_between
from asyncjob.lifecycle.view import JobView

MAX_HISTORY = 20
MAX_MESSAGE = 1024
MAX_HISTORY_MESSAGE = 256

Fields = dict[str, Json]
"""Top-level fields of `status` → new value; None removes the field."""

_CONDITION_OF = {
    Phase.SUCCEEDED: "Complete",
    Phase.DEAD_LETTER: "Failed",
    Phase.CANCELLED: "Cancelled",
}


@dataclass(frozen=True, slots=True)
class Move:
    """A change of phase, decided and not yet written."""

    target: Phase
    reason: Reason | None
    fields: Mapping[str, Json]
    entry: JsonObject


def clip(message: str, limit: int = MAX_MESSAGE) -> str:
    """Return the message within the schema's limit, with a mark where it was cut."""
    return message if len(message) <= limit else message[: limit - 1] + "…"


def move(
    job: JobView, target: Phase, *, now: str, reason: Reason | None = None, message: str = ""
) -> Move:
    """Return the change of phase with what every change of phase carries.

    `now` is RFC 3339 text. Leaving Running drops the lease and the admission; finishing sets the
    completion time and the condition that `kubectl wait` looks at.
    """
    fields: Fields = {
        "phase": target.value,
        "reason": reason.value if reason else None,
        "message": clip(message) if message else None,
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    }
    if job.phase is Phase.RUNNING:
        fields |= {"lease": None, "admitted": None}
    if job.phase is Phase.RETRYING:
        fields |= {"nextAttemptTime": None, "retryDelaySeconds": None}
    if target in FINISHED:
        fields |= {"completionTime": now, "conditions": [_condition(target, reason, message, now)]}
        fields |= _duration(job, now)
    elif job.finished:
        fields |= {"completionTime": None, "durationSeconds": None, "conditions": None}
    return Move(target, reason, fields, _entry(job, target, reason, message, now))


def _duration(job: JobView, now: str) -> Fields:
    """Return the time from the first start, a year at most.

    Two machines' clocks may put the end before the start, and a dead letter may be redriven years
    after it: what the schema refuses would keep the job from ever finishing.
    """
    took = seconds_between(job.first_start_time, now) if job.first_start_time else None
    if took is None:
        return {}
    return {"durationSeconds": round(min(max(took, 0.0), LONGEST_SECONDS), 3)}


def _condition(target: Phase, reason: Reason | None, message: str, now: str) -> Fields:
    return {
        "type": _CONDITION_OF[target],
        "status": "True",
        "reason": reason.value if reason else target.value,
        "message": clip(message),
        "lastTransitionTime": now,
    }


def _entry(
    job: JobView, target: Phase, reason: Reason | None, message: str, now: str
) -> JsonObject:
    entry: Fields = {"time": now, "phase": target.value, "attempt": job.attempt}
    if reason:
        entry["reason"] = reason.value
    if message:
        entry["message"] = clip(message, MAX_HISTORY_MESSAGE)
    if job.phase is Phase.RUNNING and job.lease:
        entry["worker"] = job.lease.worker
        entry["startTime"] = job.start_time or now
    return entry


def render(decided: Move, status: JsonObject) -> Fields:
    """Return all fields the write replaces, the history of the current status extended."""
    history = [*items(status, "history"), decided.entry]
    omitted = len(history) - MAX_HISTORY
    fields: Fields = {**decided.fields, "history": history[-MAX_HISTORY:]}
    if omitted > 0:
        fields["historyOmitted"] = integer(status, "historyOmitted") + omitted
    return fields


def merge_body(fields: Fields, resource_version: str) -> JsonObject:
    """Return a merge-patch that takes effect only on the given version of the object."""
    return {"metadata": {"resourceVersion": resource_version}, "status": fields}


def json_patch(fields: Fields, status: JsonObject) -> list[JsonObject]:
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
