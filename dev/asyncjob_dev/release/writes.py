"""The writes of worker and operator in the lives of sample jobs. Pure.

Today's code makes them, and they are applied to objects in memory. Recorded, they stand for this
version when the next one is tested: what the API server accepts from it, it has to accept then.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Final

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle import phase_change
from asyncjob.lifecycle.claim import Candidate, LeaseHolder, claim_patch
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phase_change import Failure, PhaseChange, status_fields, status_merge_patch
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import Category, read_policy_layer, resolve_policy
from asyncjob_worker.leases.held_job import HandlerReport, HeldJob
from asyncjob_worker.leases.patches import outcome_patch, renewal_patch

Object = dict[str, Any]

RESOURCE_VERSION: Final = "${resourceVersion}"
POD_UID: Final = "${podUID}"
POD: Final = "worker-0"

WORKER: Final = "worker"
OPERATOR: Final = "operator"
USER: Final = "user"

SAMPLE_LIVES: Final[Mapping[str, tuple[Object, tuple[str, ...]]]] = {
    "plain": ({}, ("claim", "succeed")),
    "long": ({}, ("claim", "renew", "report", "succeed")),
    "retried": ({}, ("claim", "report", "fail", "promote", "claim", "succeed")),
    "crashed": ({}, ("claim", "crash", "claim", "crash", "promote", "claim", "succeed")),
    "released": ({}, ("claim", "release", "claim", "succeed")),
    "evicted": ({}, ("claim", "evict", "claim", "succeed")),
    "redriven": ({}, ("claim", "give up", "wish redrive", "redrive", "claim", "succeed")),
    "dismissed": ({}, ("claim", "give up", "wish cancel", "drop")),
    "scheduled": (
        {"notBefore": "2026-01-01T00:00:00Z"},
        ("schedule", "promote", "claim", "succeed"),
    ),
    "held back": ({}, ("hold", "promote", "claim", "succeed")),
    "cancelled": ({}, ("wish cancel", "drop")),
    "stopped": ({}, ("claim", "wish cancel", "stop")),
    "never claimed": ({}, ("time out",)),
    "every field": (
        {
            "payload": {"to": ["ada"], "urgent": True, "none": None},
            "request": {"headers": {"x-a": ["1"]}, "routeParams": {"id": ["7"]}},
            "priority": 5,
            "notAfter": "2099-01-01T00:00:00Z",
            "deadlineSeconds": 86_400,
            "queueTimeoutSeconds": 7200,
            "executionTimeoutSeconds": 60,
            "leaseDurationSeconds": 30,
            "cancelGraceSeconds": 10,
            "retryPolicy": {
                "maxRetries": 3,
                "backoff": "Fixed",
                "initialDelaySeconds": 1,
                "maxDelaySeconds": 9,
                "jitter": 0.1,
                "retryOn": ["Network"],
                "noRetryOn": ["Validation"],
                "maxCrashes": 2,
            },
            "ttlSecondsAfterFinished": 3600,
            "idempotencyKey": "key",
            "concurrencyKey": "tenant",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "rerunOf": {"name": "before", "uid": "u"},
            "dependsOn": [{"name": "other", "outcome": "Any", "children": True}],
        },
        ("hold", "promote", "claim", "succeed"),
    ),
}
"""Spec and acts of each life. Every phase is passed, every kind of write is made."""


@dataclass(frozen=True, slots=True)
class JobWrite:
    """One write: whose it is, which, and onto what. `body` is a merge-patch or a JSON Patch."""

    by: str
    act: str
    subresource: str
    body: Any


Decide = Callable[[JobView, str], PhaseChange]

RETRYABLE_FAILURE = Failure(type="ConnectionError", category="Network", message="no luck")
PERMANENT_FAILURE = Failure(
    type="ValueError", category="Validation", message="hopeless", permanent=True
)

_BY_WORKER: Final[Mapping[str, Decide]] = {
    "succeed": lambda job, now: phase_change.succeed(job, now=now, result={"sum": 3}),
    "fail": lambda job, now: phase_change.fail(job, RETRYABLE_FAILURE, now=now, jitter_sample=0.5),
    "give up": lambda job, now: phase_change.fail(
        job, PERMANENT_FAILURE, now=now, jitter_sample=0.5
    ),
    "release": lambda job, now: phase_change.release(
        job, Reason.RELEASED, "drained", now=now, jitter_sample=0.5
    ),
    "stop": lambda job, now: phase_change.cancel_running_job(job, "on request", now=now),
}

_BY_OPERATOR: Final[Mapping[str, Decide]] = {
    "promote": lambda job, now: phase_change.promote(job, now=now),
    "schedule": lambda job, now: phase_change.schedule(job, now=now),
    "hold": lambda job, now: phase_change.hold(job, Reason.QUEUE_PAUSED, "paused", now=now),
    "crash": lambda job, now: phase_change.crash(
        job, Reason.LEASE_EXPIRED, "silent", now=now, jitter_sample=0.5
    ),
    "evict": lambda job, now: phase_change.release(
        job, Reason.WORKER_GONE, "gone", now=now, jitter_sample=0.5
    ),
    "redrive": lambda job, now: phase_change.redrive(job, now=now),
    "drop": lambda job, now: phase_change.cancel_waiting_job(
        job, _dropped(job), "on request", now=now
    ),
    "time out": lambda job, now: phase_change.dead_letter(
        job, Reason.QUEUE_TIMEOUT, Category.TIMEOUT, "nobody came", now=now
    ),
}

_USER_REQUESTS: Final[Mapping[str, Object]] = {
    "wish cancel": {"cancel": True},
    "wish redrive": {"redrive": 1},
}


def _dropped(job: JobView) -> Reason:
    return Reason.DISMISSED if job.phase is Phase.DEAD_LETTER else Reason.CANCEL_REQUESTED


def write(act: str, obj: Object, *, pod_uid: str, now: str) -> JobWrite:
    """Return the write with which worker, operator or user does this to the job as it is."""
    if act == "claim":
        return JobWrite(WORKER, act, "status", _claim(obj, pod_uid, now))
    if act in {"renew", "report"}:
        return JobWrite(WORKER, act, "status", _renewal(obj, now, reports=act == "report"))
    if act in _BY_WORKER:
        return JobWrite(WORKER, act, "status", _outcome(obj, _BY_WORKER[act], now))
    if act in _USER_REQUESTS:
        return JobWrite(USER, act, "", {"spec": _USER_REQUESTS[act]})
    version = obj["metadata"]["resourceVersion"]
    move = _BY_OPERATOR[act](read_job(obj), now)
    return JobWrite(
        OPERATOR,
        act,
        "status",
        dict(status_merge_patch(status_fields(move, obj["status"]), version)),
    )


def _claim(obj: Object, pod_uid: str, now: str) -> Object:
    seen = read_job(obj)
    candidate = Candidate(seen.name, seen.resource_version, seen.type, attempt=seen.attempt)
    holder, policy = (
        LeaseHolder(POD, pod_uid, f"{POD}/1"),
        resolve_policy(read_policy_layer(obj["spec"])),
    )
    claim = f"claim-{seen.attempt + 1}"
    return dict(claim_patch(candidate, holder, policy, claim_id=claim, now=now))


def _leased_job(obj: Object) -> HeldJob:
    held = HeldJob.from_response(obj, 0.0)
    held.renewals = obj["status"]["lease"]["renewals"]
    return held


def _renewal(obj: Object, now: str, *, reports: bool) -> list[JsonObject]:
    draft = HandlerReport(1, {"percent": 40, "message": "half"}, {"row": 7}, 1) if reports else None
    return renewal_patch(_leased_job(obj), draft, now)


def _outcome(obj: Object, decide: Decide, now: str) -> list[JsonObject]:
    return outcome_patch(_leased_job(obj), decide(read_job(obj), now), obj["status"], None)


def write_record(write_: JobWrite, phase: str) -> Object:
    """Return a write as it is kept, with the phase that it leads to."""
    return {**asdict(write_), "phase": phase}


_NOW: Final = "2026-01-01T00:{:02}:00.000Z"
_COUNTERS: Final = ("attempt", "retries", "crashes", "releases", "redrives", "reruns")


def record_lives(version: str) -> Object:
    """Return all lives with their writes, as this version makes them."""
    lives = [
        {"name": name, "spec": spec, "writes": _writes(name, spec, acts)}
        for name, (spec, acts) in SAMPLE_LIVES.items()
    ]
    return {"version": version, "lives": lives}


def write_time(number: int) -> str:
    """Return when the write of this number is made."""
    return _NOW.format(number + 1)


def _writes(name: str, spec: Object, acts: tuple[str, ...]) -> list[Object]:
    job, kept = _created(name, spec), []
    for number, act in enumerate(acts):
        made = write(act, job, pod_uid=POD_UID, now=write_time(number))
        job = applied(job, made.body)
        kept.append(write_record(made, job["status"]["phase"]))
    return kept


def _created(name: str, spec: Object) -> Object:
    return {
        "metadata": {"name": name, "uid": "uid", "resourceVersion": RESOURCE_VERSION},
        "spec": {"type": "echo", "queue": "default", "priority": 0, **spec},
        "status": {"phase": "Queued", **dict.fromkeys(_COUNTERS, 0)},
    }


def applied(obj: Object, body: Any) -> Object:
    """Return the object after a merge-patch or a JSON Patch, as the API server would have it."""
    after = deepcopy(obj)
    if isinstance(body, dict):
        _merge(after, body)
        return after
    for operation in body:
        *way, last = operation["path"].lstrip("/").split("/")
        target = after
        for step in way:
            target = target[step]
        match operation["op"]:
            case "remove":
                del target[last]
            case "add" | "replace":
                target[last] = operation["value"]
            case "test":
                assert target[last] == operation["value"], operation
    return after


def _merge(target: Object, patch: Object) -> None:
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = deepcopy(value)
