"""Builds a job as REST shows it from an AsyncJob as the API server returns it. Pure.

Lists have tens of thousands of these, so a summary is taken out of the plain object and validated
once, as a whole.
"""

from typing import Final

from asyncjob.deep_json import truncate_for_display
from asyncjob.json_types import (
    Json,
    JsonObject,
    as_object,
    child,
    flag,
    integer,
    items,
    opt_integer,
    opt_text,
    text,
)
from asyncjob.lifecycle.job_view import deadline_of
from asyncjob.lifecycle.phases import FINAL_PHASES, FINISHED_PHASES, Phase
from asyncjob.lifecycle.signals import signals_of
from asyncjob.lifecycle.step_records import steps_of
from asyncjob.lifecycle.waiting import explain_wait
from asyncjob.lifecycle.waits import waits_of
from asyncjob.names import (
    CRON_JOB_LABEL,
    CRON_JOB_UID_LABEL,
    DEFAULT_QUEUE,
    PARENT_LABEL,
    PARENT_NAME_ANNOTATION,
)
from asyncjob.rest.jobs import Job, JobSummary

CREATED_PHASE: Final = "Created"
"""The first thing that happens to a job, by the words of history."""

_EMPTY_QUEUE: Final[JsonObject] = {}


def summary_of(job: JsonObject, queue: JsonObject | None = None) -> JobSummary:
    """Return the job as lists show it.

    `queue` is its AsyncQueue, if it has one: with it a waiting job says more exactly what it waits
    for. Raises ValueError on a phase that this version does not know.
    """
    return JobSummary.model_validate(_summary_fields(job, queue))


def job_of(job: JsonObject, queue: JsonObject | None = None) -> Job:
    """Return the job with all that is known of it, payload and result included.

    Of what is nested too deeply for that, words tell.
    """
    return Job.model_validate(
        {**_summary_fields(job, queue), **_spec_fields(job), **_status_fields(job)}
    )


def _summary_fields(job: JsonObject, queue: JsonObject | None) -> dict[str, Json]:
    meta, spec, status = child(job, "metadata"), child(job, "spec"), child(job, "status")
    phase = Phase(text(status, "phase", Phase.QUEUED))
    created = text(meta, "creationTimestamp")
    reason, message = _reason_and_message(job, queue, phase, status)
    return {
        "id": meta.get("name"),
        "namespace": meta.get("namespace"),
        "uid": meta.get("uid"),
        "type": spec.get("type"),
        "queue": text(spec, "queue", DEFAULT_QUEUE),
        "phase": phase,
        "reason": reason,
        "message": message,
        "priority": integer(spec, "priority"),
        "attempt": integer(status, "attempt"),
        "retries": integer(status, "retries"),
        "maxRetries": _max_retries(spec, status),
        "progress": status.get("progress"),
        "worker": opt_text(child(status, "lease"), "holder"),
        "error": status.get("error"),
        "labels": child(meta, "labels"),
        "createdAt": created,
        "startedAt": status.get("startTime"),
        "completedAt": status.get("completionTime"),
        "updatedAt": status.get("lastUpdateTime") or status.get("lastTransitionTime") or created,
        "nextAttemptAt": status.get("nextAttemptTime") if phase is Phase.RETRYING else None,
        "durationSeconds": status.get("durationSeconds"),
        "deadlineAt": deadline_of(created, opt_integer(spec, "deadlineSeconds")),
        "cancelling": flag(spec, "cancel") and phase not in FINAL_PHASES,
    }


def _reason_and_message(
    job: JsonObject, queue: JsonObject | None, phase: Phase, status: JsonObject
) -> tuple[str | None, str | None]:
    """Return why the job is where it is; of one that waits that is mostly written nowhere."""
    reason, message = opt_text(status, "reason"), opt_text(status, "message")
    if phase in FINISHED_PHASES or phase is Phase.RUNNING:
        return reason, message
    why = explain_wait(job, queue or _EMPTY_QUEUE)
    return (why.reason or reason, why.message) if why else (reason, message)


def _max_retries(spec: JsonObject, status: JsonObject) -> int | None:
    in_force = opt_integer(child(status, "effective"), "maxRetries")
    return opt_integer(child(spec, "retryPolicy"), "maxRetries") if in_force is None else in_force


def _spec_fields(job: JsonObject) -> dict[str, Json]:
    meta, spec = child(job, "metadata"), child(job, "spec")
    labels, origin = child(meta, "labels"), child(spec, "rerunOf")
    parent_name = text(child(meta, "annotations"), PARENT_NAME_ANNOTATION)
    return {
        "resourceVersion": meta.get("resourceVersion"),
        "notBefore": spec.get("notBefore"),
        "notAfter": spec.get("notAfter"),
        "dependsOn": items(spec, "dependsOn"),
        "suspended": flag(spec, "suspend"),
        "idempotencyKey": spec.get("idempotencyKey"),
        "deduplicationId": spec.get("deduplicationId"),
        "concurrencyKey": spec.get("concurrencyKey"),
        "traceparent": spec.get("traceparent"),
        "parent": _link(parent_name, labels.get(PARENT_LABEL)),
        "rerunOf": _link(origin.get("name"), origin.get("uid")),
        "cronJob": _link(labels.get(CRON_JOB_LABEL), labels.get(CRON_JOB_UID_LABEL)),
        "signals": [
            _signal(name, as_object(signal)) for name, signal in sorted(signals_of(spec).items())
        ],
        "payload": truncate_for_display(spec.get("payload")),
        "payloadFrom": spec.get("payloadFrom"),
        "request": spec.get("request"),
    }


def _signal(name: str, signal: JsonObject) -> JsonObject:
    return {**signal, "name": name, "payload": truncate_for_display(signal.get("payload"))}


def _status_fields(job: JsonObject) -> dict[str, Json]:
    status = child(job, "status")
    phase, ended = text(status, "phase"), status.get("completionTime")
    return {
        "firstStartedAt": status.get("firstStartTime"),
        "failedAt": ended if phase == Phase.DEAD_LETTER else None,
        "cancelledAt": ended if phase == Phase.CANCELLED else None,
        "crashes": integer(status, "crashes"),
        "releases": integer(status, "releases"),
        "parks": integer(status, "parks"),
        "redrives": integer(status, "redrives"),
        "reruns": integer(status, "reruns"),
        "effective": status.get("effective"),
        "history": [_creation_entry(job), *map(_history_entry, items(status, "history"))],
        "historyOmitted": integer(status, "historyOmitted"),
        "steps": _steps(status),
        "waits": _waits(status),
        "waiting": [_waiting(as_object(one)) for one in items(status, "waiting")],
        "hasResult": "result" in status or "resultRef" in status,
        "checkpoint": truncate_for_display(status.get("checkpoint")),
        "result": truncate_for_display(status.get("result")),
        "resultRef": status.get("resultRef"),
    }


def _steps(status: JsonObject) -> list[JsonObject]:
    """Return the steps that are done, oldest first; the API server sorts them by key."""
    steps = [_step(key, as_object(record)) for key, record in steps_of(status).items()]
    return sorted(steps, key=lambda step: (text(step, "completedAt"), text(step, "key")))


def _step(key: str, record: JsonObject) -> JsonObject:
    return {
        "key": key,
        "attempt": integer(record, "attempt"),
        "startedAt": record.get("startTime"),
        "completedAt": record.get("completionTime"),
        "sizeBytes": integer(record, "sizeBytes"),
        "result": truncate_for_display(record.get("result")),
        "resultRef": record.get("resultRef"),
    }


def _waits(status: JsonObject) -> list[JsonObject]:
    """Return the waits whose ends are kept, by their ends."""
    waits = [_wait(key, as_object(record)) for key, record in waits_of(status).items()]
    return sorted(waits, key=lambda wait: (text(wait, "until"), text(wait, "key")))


def _wait(key: str, record: JsonObject) -> JsonObject:
    kind, until = text(record, "kind"), text(record, "until")
    return {"key": key, "kind": kind, "until": until, "over": flag(record, "over")}


def _waiting(entry: JsonObject) -> JsonObject:
    if "payloadSchema" not in entry:
        return entry
    return {**entry, "payloadSchema": truncate_for_display(entry["payloadSchema"])}


def _link(name: Json, uid: Json) -> Json:
    return {"name": name or "", "uid": uid or None} if name or uid else None


def _creation_entry(job: JsonObject) -> JsonObject:
    return {"time": text(child(job, "metadata"), "creationTimestamp"), "phase": CREATED_PHASE}


def _history_entry(entry: Json) -> JsonObject:
    known = as_object(entry)
    return {**known, "attempt": integer(known, "attempt")}
