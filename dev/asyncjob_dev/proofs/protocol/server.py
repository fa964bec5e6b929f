"""The API server of the search: a job as text, and writes that the generated rules accept or not.

A job is its canonical JSON, so that states are compared fast. Every question is asked once and its
answer remembered. What grows without end or only tells people what happened is not kept: history,
messages, most times. What the rules say of these is proven for all jobs, see `rules`.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, cast

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import API_VERSION, JOB_KIND
from asyncjob_dev.proofs.rules.admission import Requester, Subresource, broken_rules

Stored: TypeAlias = str
"""A job as the API server keeps it, in canonical JSON."""

COUNTERS: Final = ("attempt", "retries", "crashes", "releases", "redrives", "reruns")
_NOT_KEPT: Final = (
    *("history", "historyOmitted", "lastUpdateTime", "startTime", "durationSeconds"),
    *("error", "progress"),
)


class RefusedError(Exception):
    """The API server refuses the write: a rule, a failed test, or an unknown field to remove."""


@cache
def new_job(number: int, spec: str) -> Stored:
    """Return a job as it is created; `spec` is JSON. Jobs with one number have one name."""
    counters = dict.fromkeys(COUNTERS, 0)
    return _stored(
        {
            "apiVersion": API_VERSION,
            "kind": JOB_KIND,
            "metadata": {
                "name": f"job-{number}",
                "namespace": "model",
                "uid": f"uid-{number}",
                "resourceVersion": "1",
                "creationTimestamp": f"2026-01-01T00:00:0{number}Z",
            },
            "spec": {"type": "test", "queue": "default", "priority": 0, **json.loads(spec)},
            "status": {"phase": "Queued", **counters},
        }
    )


def _stored(obj: Mapping[str, Any]) -> Stored:
    return json.dumps(obj, sort_keys=True, separators=(",", ":"))


@cache
def load(job: Stored) -> JsonObject:
    """Return the job; not to be changed."""
    return cast("JsonObject", json.loads(job))


@cache
def view(job: Stored) -> JobView:
    """Return the job as decisions see it."""
    return read_job(load(job))


@cache
def status_of(job: Stored) -> Mapping[str, Any]:
    """Return its status."""
    return cast("Mapping[str, Any]", load(job)["status"])


def phase_of(job: Stored) -> Phase:
    """Return its phase."""
    return view(job).phase


@cache
def merged(job: Stored, patch: str, requester: Requester) -> Stored | None:
    """Return the job after a merge patch of its status, None if it is refused."""
    status = _merge(load(job)["status"], json.loads(patch)["status"])
    return _accepted(job, cast("dict[str, Any]", status), requester)


@cache
def patched(job: Stored, operations: str, requester: Requester) -> Stored | None:
    """Return the job after a JSON Patch of its status, None if it is refused."""
    try:
        body = _apply({"status": status_of(job)}, json.loads(operations))
    except RefusedError:
        return None
    return _accepted(job, body["status"], requester)


@cache
def settled(job: Stored) -> Stored:
    """Return a job that has ended for good, less all that tells how."""
    kept = {"phase": phase_of(job), **dict.fromkeys(COUNTERS, 0)}
    return _stored({**load(job), "status": kept})


@cache
def asked(job: Stored, controls: str) -> Stored | None:
    """Return the job after a change of its spec, None if it is refused."""
    obj = load(job)
    new = {**obj, "spec": {**cast("Any", obj["spec"]), **json.loads(controls)}}
    refused = any(broken_rules(Subresource.SPEC, obj, new, Requester()))
    return None if refused else _stored(new)


def _accepted(job: Stored, status: dict[str, Any], requester: Requester) -> Stored | None:
    old = load(job)
    new = {**old, "status": status}
    if any(broken_rules(Subresource.STATUS, _with_times(old), _with_times(new), requester)):
        return None
    kept = {name: value for name, value in status.items() if name not in _NOT_KEPT}
    if status["phase"] != Phase.PENDING:
        kept.pop("message", None)
    return _stored({**old, "status": kept})


def _with_times(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the job with the time of its start, which a claim sets and is not kept here."""
    status = job["status"]
    started = {"startTime": status["firstStartTime"]} if "firstStartTime" in status else {}
    return {**job, "status": {**started, **status}}


def _merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge(result.get(name), value)
    return result


def _apply(body: dict[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the body after a JSON Patch of objects within objects."""
    body = cast("dict[str, Any]", json.loads(json.dumps(body)))
    for operation in operations:
        *parents, name = operation["path"].strip("/").split("/")
        place: Any = body
        for parent in parents:
            place = place.get(parent) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            raise RefusedError(operation["path"])
        _apply_one(place, name, operation)
    return body


def _apply_one(place: dict[str, Any], name: str, operation: Mapping[str, Any]) -> None:
    kind = operation["op"]
    if kind != "add" and name not in place:
        raise RefusedError(operation["path"])
    if kind == "test" and place[name] != operation["value"]:
        raise RefusedError(operation["path"])
    if kind == "remove":
        del place[name]
    elif kind in {"add", "replace"}:
        place[name] = operation["value"]
