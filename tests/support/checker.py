"""Judges a job by its versions alone: which rules the change from one to the next breaks.

Written by hand, not derived from the rules that the API server enforces: so it finds their errors.
It knows nothing of who wrote what, but for `misuse` and `overreach`, which are given the writer.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Obj = Mapping[str, Any]

LEGAL = {
    "Queued": {"Running", "Scheduled", "Pending", "Cancelled", "DeadLetter"},
    "Pending": {"Queued", "Cancelled", "DeadLetter"},
    "Scheduled": {"Queued", "Cancelled"},
    "Retrying": {"Queued", "Cancelled"},
    "Running": {"Succeeded", "Retrying", "Queued", "DeadLetter", "Cancelled"},
    "DeadLetter": {"Queued", "Cancelled"},
    "Succeeded": set(),
    "Cancelled": set(),
}
REASONS = {
    "Queued": {
        "GateOpened",
        "StartTimeReached",
        "BackoffElapsed",
        "Released",
        "WorkerGone",
        "Redriven",
    },
    "Pending": {
        "QueuePaused",
        "ConcurrencyLimit",
        "RateLimit",
        "WaitingForDependency",
        "Suspended",
    },
    "Scheduled": {"NotBefore"},
    "Retrying": {
        "HandlerFailed",
        "RetryRequested",
        "ExecutionTimeout",
        "HandlerCrashed",
        "LeaseExpired",
        "WorkerCrashed",
        "WorkerGone",
        "Released",
    },
    "DeadLetter": {
        "RetriesExhausted",
        "CrashBudgetExhausted",
        "NotRetryable",
        "InvalidPayload",
        "ResultRefused",
        "ExecutionTimeout",
        "QueueTimeout",
        "UnknownType",
        "DependencyFailed",
    },
    "Cancelled": {"CancelRequested", "DeadlineExceeded", "Duplicate", "Dismissed"},
}
"""Why a job may come to a phase; to Running and Succeeded it comes without a reason."""

HOLDER_REASONS = {
    "HandlerFailed",
    "RetryRequested",
    "HandlerCrashed",
    "Released",
    "NotRetryable",
    "InvalidPayload",
    "ResultRefused",
}
"""Why an attempt may be ended by nobody but the worker that holds the job."""

FINISHED = {"Succeeded", "DeadLetter", "Cancelled"}
GATES = ("notBefore", "notAfter", "dependsOn", "deduplicationId")
CONTROL_CHANGES = {"cancel", "cancelCascade", "suspend", "redrive", "rerun", "priority"}
BUDGETS = ("retries", "crashes", "releases")


def violations(before: Obj, after: Obj) -> list[str]:
    """Return the rules that the step breaks, in words."""
    return [*_state(after), *_spec(before["spec"], after), *_step(before["status"], after)]


def misuse(before: Obj, after: Obj, pod_uid: str) -> list[str]:
    """Return what is wrong with a worker's having made the step."""
    was, now = before["status"], after["status"]
    if was == now:
        return []
    holder = (was.get("lease") or now.get("lease") or {}).get("holderUID")
    return [] if holder == pod_uid else [f"{pod_uid} wrote a job that {holder} holds"]


def overreach(before: Obj, after: Obj) -> list[str]:
    """Return what is wrong with an operator's having made the step."""
    was, now = before["status"], after["status"]
    if now["phase"] in {"Running", "Succeeded"} and was["phase"] != now["phase"]:
        return [f"an operator has made a job {now['phase']}"]
    if was["phase"] != "Running":
        return []
    if now["phase"] == "Running":
        changed = {**was, "reruns": 0} != {**now, "reruns": 0}
        return ["an operator has changed a running job"] if changed else []
    if any(was.get(field) != now.get(field) for field in ("checkpoint", "progress")):
        return ["an operator has changed the work of a job that it took away"]
    reason = now["reason"]
    return [f"an operator has ended an attempt for {reason}"] if reason in HOLDER_REASONS else []


def _state(job: Obj) -> Iterator[str]:
    """Yield what is wrong with a version by itself."""
    status = job["status"]
    phase = status["phase"]
    if ("lease" in status) != (phase == "Running"):
        yield f"lease and phase {phase} do not go together"
    if ("completionTime" in status) != (phase in FINISHED):
        yield f"completionTime and phase {phase} do not go together"
    if ("retryDelaySeconds" in status) != (phase == "Retrying"):
        yield f"retryDelaySeconds and phase {phase} do not go together"
    if "result" in status and phase != "Succeeded":
        yield f"a result in phase {phase}"
    if len(status.get("history", [])) > 20:
        yield "more than 20 entries of history"
    conditions = [item["type"] for item in status.get("conditions", [])]
    wanted = {"Succeeded": ["Complete"], "DeadLetter": ["Failed"], "Cancelled": ["Cancelled"]}
    if conditions != wanted.get(phase, []):
        yield f"conditions {conditions} in phase {phase}"


def _spec(before: Obj, job: Obj) -> Iterator[str]:
    after = job["spec"]
    for name in {*before, *after} - CONTROL_CHANGES:
        if before.get(name) != after.get(name):
            yield f"spec.{name} changed"
    if before.get("cancel") and not after.get("cancel"):
        yield "cancel was taken back"
    for control in ("redrive", "rerun"):
        if after.get(control, 0) < before.get(control, 0):
            yield f"{control} shrank"


def _step(was: Obj, job: Obj) -> Iterator[str]:
    now = job["status"]
    if was["phase"] != now["phase"]:
        yield from _move(was, now)
    else:
        yield from _stay(was, now)
    claimed = (was["phase"], now["phase"]) == ("Queued", "Running")
    if claimed:
        yield from _claim(was, job)
    elif now["attempt"] != was["attempt"] or now.get("claim") != was.get("claim"):
        yield "attempt or claim changed without a claim"
    yield from _counters(was, now)


def _move(was: Obj, now: Obj) -> Iterator[str]:
    if now["phase"] not in LEGAL[was["phase"]]:
        yield f"{was['phase']} to {now['phase']}"
    if now.get("reason") not in REASONS.get(now["phase"], {None}):
        yield f"{now['phase']} for the reason {now.get('reason')}"
    grown = len(now.get("history", [])) + now.get("historyOmitted", 0)
    known = len(was.get("history", [])) + was.get("historyOmitted", 0)
    if grown != known + (now["phase"] != "Running"):
        yield f"history went from {known} to {grown} entries"
    if was["phase"] == "Running" and "admitted" in now:
        yield "still admitted after Running"


def _stay(was: Obj, now: Obj) -> Iterator[str]:
    if now["phase"] in FINISHED and {**was, "reruns": 0} != {**now, "reruns": 0}:
        yield f"a {now['phase']} job changed"
    if now["phase"] == "Running":
        fixed = ("holder", "holderUID", "worker", "acquireTime", "durationSeconds")
        if any(was["lease"][name] != now["lease"][name] for name in fixed):
            yield "the lease changed hands"
        if now["lease"]["renewals"] < was["lease"]["renewals"]:
            yield "renewals shrank"
    elif was.get("checkpoint") != now.get("checkpoint"):
        yield "the checkpoint changed while not running"
    for name in ("effective", "history", "startTime", "firstStartTime", "error"):
        if was.get(name) != now.get(name):
            yield f"{name} changed without a move"


def _claim(was: Obj, job: Obj) -> Iterator[str]:
    spec, now = job["spec"], job["status"]
    if now["attempt"] != was["attempt"] + 1 or now["claim"] == was.get("claim"):
        yield "a claim without a new attempt and a new claim"
    if spec.get("suspend") or spec.get("cancel"):
        yield "a suspended or cancelled job was claimed"
    gated = any(spec.get(name) for name in GATES)
    if gated and not was.get("admitted"):
        yield "a gated job was claimed unadmitted"
    for name, value in spec.get("retryPolicy", {}).items():
        if now["effective"][name] != value:
            yield f"effective.{name} is not what the spec says"
    if was.get("firstStartTime", now["firstStartTime"]) != now["firstStartTime"]:
        yield "firstStartTime changed"


def _counters(was: Obj, now: Obj) -> Iterator[str]:
    redriven = (was["phase"], now["phase"]) == ("DeadLetter", "Queued")
    for name in BUDGETS:
        grown = now[name] - was[name]
        if redriven and now[name] != 0:
            yield f"{name} not reset by the redrive"
        if not redriven and (grown not in {0, 1} or (grown and was["phase"] != "Running")):
            yield f"{name} went from {was[name]} to {now[name]}"
    if now["retries"] > was["retries"] and now["retries"] > was["effective"]["maxRetries"]:
        yield "more retries than the policy allows"
    if (now["redrives"] != was["redrives"]) != redriven:
        yield "redrives and a redrive do not go together"
    retrying = (was["phase"], now["phase"]) == ("Running", "Retrying")
    if retrying and all(now[name] == was[name] for name in BUDGETS):
        yield "Retrying without anything spent"
