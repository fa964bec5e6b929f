"""Changes of phase: how each is computed and how it is written.

`change_phase` computes what every change has in common. `status_fields`, `status_merge_patch` and
`status_json_patch` turn a `PhaseChange` into what is sent; they also add to the history, which they
take from the current status, because a `JobView` has none.

The changes themselves come last. Worker and operator share those out of Running: `succeed`, `fail`,
`crash`, `release`, `park`, `cancel_running_job`. Only the operator makes those of a job that no
worker holds: all from `promote` on, down to `redrive`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from asyncjob.json_types import Json, JsonObject, as_object, integer, items
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import FINISHED_PHASES, LOST_WORKER_REASONS, Phase, Reason
from asyncjob.lifecycle.policy import (
    BUILT_IN_POLICY,
    MAX_DURATION_SECONDS,
    Category,
    EffectivePolicy,
    is_retryable_category,
    requested_delay,
    retry_delay,
)
from asyncjob.lifecycle.timestamps import add_seconds, seconds_between
from asyncjob.lifecycle.waits import (
    WaitView,
    keep_sleeps,
    mark_over,
    park_reason,
    parked_message,
    waits_of,
    without_dropped,
)

MAX_HISTORY_ENTRIES = 20
MAX_MESSAGE_LENGTH = 1024
MAX_HISTORY_MESSAGE_LENGTH = 256
MAX_ERROR_TYPE_LENGTH = 256
MAX_ERROR_MESSAGE_LENGTH = 4096

MAX_IMMEDIATE_RELEASES = 3
"""Releases that requeue at once; later ones wait for a backoff."""

MAX_RELEASES = 100
"""Releases beyond this count as crashes."""

StatusFields = dict[str, Json]
"""Top-level fields of `status` → new value; None removes the field."""

_CONDITION_TYPES = {
    Phase.SUCCEEDED: "Complete",
    Phase.DEAD_LETTER: "Failed",
    Phase.CANCELLED: "Cancelled",
}
"""The condition of a finished job, which `kubectl wait` looks at. Types are those of a Job."""

_PROMOTION_REASONS = {
    Phase.PENDING: Reason.GATE_OPENED,
    Phase.SCHEDULED: Reason.START_TIME_REACHED,
    Phase.RETRYING: Reason.BACKOFF_ELAPSED,
}


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A change of phase, decided and not yet written."""

    target: Phase
    reason: Reason | None
    fields: Mapping[str, Json]
    history_entry: JsonObject | None
    """None for a park and the promotion that ends it: a job that sleeps often would lose the rest
    of its history."""

    waits_over: tuple[str, ...] = ()
    """Keys of the waits that the change marks as over."""


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
    if job.waiting:
        fields["waiting"] = None
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
    fields: StatusFields = dict(change.fields)
    if change.reason is Reason.REDRIVEN and "waits" in status:
        fields["waits"] = keep_sleeps(waits_of(status))
    if change.waits_over:
        fields["waits"] = mark_over(waits_of(status), change.waits_over)
    if change.history_entry is None:
        return fields
    history = [*items(status, "history"), change.history_entry]
    omitted = len(history) - MAX_HISTORY_ENTRIES
    fields["history"] = history[-MAX_HISTORY_ENTRIES:]
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
            whole = without_dropped(as_object(value)) if name == "waits" else value
            operations.append({"op": "add", "path": path, "value": whole})
        elif name in status:
            operations.append({"op": "remove", "path": path})
    return operations


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a job.

    `retry_after` is the delay in seconds the handler asked for; `permanent` forbids another
    attempt. `reason` is that of the change of phase, NotRetryable or HandlerFailed if it is None; a
    job whose retries are exhausted says that instead.
    """

    type: str
    category: str
    message: str
    retry_after: float | None = None
    permanent: bool = False
    reason: Reason | None = None

    def to_json(self) -> StatusFields:
        """Return the form of `status.error`."""
        return {
            "type": truncate(self.type, MAX_ERROR_TYPE_LENGTH),
            "category": self.category,
            "message": truncate(self.message, MAX_ERROR_MESSAGE_LENGTH),
        }


def succeed(job: JobView, *, now: str, result: Json = None, result_ref: Json = None) -> PhaseChange:
    """Return Running → Succeeded, with the result or a reference to it."""
    done = change_phase(job, Phase.SUCCEEDED, now=now)
    return _with_fields(
        done, result=result, resultRef=result_ref, error=None, progress={"percent": 100}
    )


def fail(job: JobView, failure: Failure, *, now: str, jitter_sample: float) -> PhaseChange:
    """Return Running → Retrying or DeadLetter for a failed attempt.

    `jitter_sample` decides the jitter of the delay, see `retry_delay`.
    """
    policy = _effective_policy(job)
    requested = failure.retry_after is not None
    if failure.permanent or not (requested or is_retryable_category(policy, failure.category)):
        return _to_dead_letter(
            job, failure, failure.reason or Reason.NOT_RETRYABLE, failure.message, now
        )
    if job.retries >= policy.max_retries:
        message = f"failed after {job.retries} of {policy.max_retries} retries: {failure.message}"
        return _to_dead_letter(job, failure, Reason.RETRIES_EXHAUSTED, message, now)
    wait = retry_delay(policy, job.retries, jitter_sample)
    if failure.retry_after is not None:
        wait = requested_delay(failure.retry_after)
    reason = failure.reason or Reason.HANDLER_FAILED
    message = f"retry {job.retries + 1} of {policy.max_retries}: {failure.message}"
    retrying = _to_retrying(job, reason, message, wait, now)
    return _with_fields(retrying, retries=job.retries + 1, error=failure.to_json())


def crash(
    job: JobView, reason: Reason, message: str, *, now: str, jitter_sample: float
) -> PhaseChange:
    """Return Running → Queued, Retrying or DeadLetter: the worker or the handler's process died.

    It spends the crash budget and never a retry. The first has no backoff if its worker is lost.
    """
    policy = _effective_policy(job)
    failure = Failure(type=reason.value, category=Category.CRASH, message=message)
    if job.crashes >= policy.max_crashes:
        times = "once" if job.crashes == 0 else f"{job.crashes + 1} times"
        allowed = f"{policy.max_crashes} {'is' if policy.max_crashes == 1 else 'are'} allowed"
        text = f"crashed {times}, {allowed}: {message}"
        dead = _to_dead_letter(job, failure, Reason.CRASH_BUDGET_EXHAUSTED, text, now)
        return _with_fields(dead, crashes=job.crashes + 1)
    text = f"crash {job.crashes + 1} of {policy.max_crashes} allowed: {message}"
    if job.crashes == 0 and reason in LOST_WORKER_REASONS:
        again = change_phase(job, Phase.QUEUED, now=now, reason=reason, message=text)
    else:
        wait = retry_delay(policy, job.crashes, jitter_sample)
        again = _to_retrying(job, reason, text, wait, now)
    return _with_fields(again, crashes=job.crashes + 1, error=failure.to_json())


def release(
    job: JobView, reason: Reason, message: str, *, now: str, jitter_sample: float
) -> PhaseChange:
    """Return Running → Queued for an attempt given back, as long as that does not happen often.

    Every release is counted. From the fourth on it leads to Retrying, with the backoff of a retry
    but without spending one. From the 101st on each is a crash as well: Retrying, or DeadLetter
    where the crash budget is spent. A redrive starts the count again at 0.
    """
    released = job.releases + 1
    if released > MAX_RELEASES:
        return _with_fields(
            crash(job, reason, message, now=now, jitter_sample=jitter_sample), releases=released
        )
    if released > MAX_IMMEDIATE_RELEASES:
        wait = retry_delay(
            _effective_policy(job), released - MAX_IMMEDIATE_RELEASES - 1, jitter_sample
        )
        return _with_fields(_to_retrying(job, reason, message, wait, now), releases=released)
    queued = change_phase(job, Phase.QUEUED, now=now, reason=reason, message=message)
    return _with_fields(queued, releases=released)


def park(job: JobView, waits: JsonObject, waiting: Sequence[WaitView], *, now: str) -> PhaseChange:
    """Return Running → Scheduled, or Pending, for a job whose handler waits without a slot.

    It is Scheduled if it only sleeps, else Pending. `waits` are the records of all its waits so
    far, `waiting` those that are not over. It costs no retry. The steps taken and the waits that
    are over return at once in the next attempt.
    """
    reason = park_reason(waiting)
    target = Phase.SCHEDULED if reason is Reason.SLEEPING else Phase.PENDING
    parked = change_phase(job, target, now=now, reason=reason, message=parked_message(waiting))
    entries: list[Json] = [one.to_json() for one in waiting]
    parked = _with_fields(parked, parks=job.parks + 1, waiting=entries, waits=waits or None)
    return replace(parked, history_entry=None)


def cancel_running_job(
    job: JobView, message: str, *, now: str, reason: Reason = Reason.CANCEL_REQUESTED
) -> PhaseChange:
    """Return Running → Cancelled, on request or because the job's deadline has passed."""
    return change_phase(job, Phase.CANCELLED, now=now, reason=reason, message=message)


def deadline_message(job: JobView) -> str:
    """Return what is said of a job that its `deadlineSeconds` has ended."""
    return f"not finished within deadlineSeconds, {job.deadline_seconds} s from its creation"


def _effective_policy(job: JobView) -> EffectivePolicy:
    return job.effective or BUILT_IN_POLICY


def _to_dead_letter(
    job: JobView, failure: Failure, reason: Reason, message: str, now: str
) -> PhaseChange:
    dead = change_phase(job, Phase.DEAD_LETTER, now=now, reason=reason, message=message)
    return _with_fields(dead, error=failure.to_json())


def _to_retrying(job: JobView, reason: Reason, message: str, wait: float, now: str) -> PhaseChange:
    retrying = change_phase(job, Phase.RETRYING, now=now, reason=reason, message=message)
    return _with_fields(retrying, retryDelaySeconds=wait, nextAttemptTime=add_seconds(now, wait))


def _with_fields(change: PhaseChange, **fields: Json) -> PhaseChange:
    return replace(change, fields={**change.fields, **fields})


def promote(job: JobView, *, now: str, waits_over: tuple[str, ...] = ()) -> PhaseChange:
    """Return Pending, Scheduled or Retrying → Queued, admitted where the job has a gate.

    `waits_over` are the keys of the waits of a parked job that are over.
    """
    reason = Reason.WAIT_OVER if job.waiting else _PROMOTION_REASONS[job.phase]
    queued = change_phase(job, Phase.QUEUED, now=now, reason=reason)
    if job.waiting:
        queued = replace(queued, history_entry=None, waits_over=waits_over)
    return _with_fields(queued, admitted=True) if job.gated else queued


def schedule(job: JobView, *, now: str) -> PhaseChange:
    """Return Queued → Scheduled, because `notBefore` lies ahead."""
    message = f"starts at {job.gates.not_before}"
    scheduled = change_phase(
        job, Phase.SCHEDULED, now=now, reason=Reason.NOT_BEFORE, message=message
    )
    return _with_fields(scheduled, admitted=None)


def hold(job: JobView, reason: Reason, message: str, *, now: str) -> PhaseChange:
    """Return Queued → Pending, with what the job waits for."""
    held = change_phase(job, Phase.PENDING, now=now, reason=reason, message=message)
    return _with_fields(held, admitted=None)


def dead_letter(
    job: JobView, reason: Reason, category: Category, message: str, *, now: str
) -> PhaseChange:
    """Return Queued or Pending → DeadLetter, for a job that cannot start.

    `category` is what `status.error` shows. Nothing is retried by it: no attempt has failed.
    """
    failure = Failure(type=reason.value, category=category, message=message)
    dead = change_phase(job, Phase.DEAD_LETTER, now=now, reason=reason, message=message)
    return _with_fields(dead, admitted=None, error=failure.to_json())


def cancel_waiting_job(job: JobView, reason: Reason, message: str, *, now: str) -> PhaseChange:
    """Return Queued, Pending, Scheduled or Retrying → Cancelled; DeadLetter too: a dismissal."""
    gone = change_phase(job, Phase.CANCELLED, now=now, reason=reason, message=message)
    return _with_fields(gone, admitted=None)


def redrive(job: JobView, *, now: str) -> PhaseChange:
    """Return DeadLetter → Queued with all counters of budgets at 0, and the request acknowledged.

    The attempt goes on counting: it is part of the fencing token. Waits but sleeps begin again.
    """
    message = f"redrive {job.control.redrive}"
    queued = change_phase(job, Phase.QUEUED, now=now, reason=Reason.REDRIVEN, message=message)
    return _with_fields(
        queued,
        redrives=job.control.redrive,
        retries=0,
        crashes=0,
        releases=0,
        parks=0,
        admitted=None,
    )
