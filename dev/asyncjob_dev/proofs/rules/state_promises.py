"""What is promised of each version of a job, written without the rules.

Each promise is a sentence and a formula; the formulas read fields and know nothing of CEL.
"""

from typing import Final, cast

import z3

from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.waits import WaitKind
from asyncjob.models import RetryPolicy
from asyncjob_dev.proofs.rules.symbols import (
    FALSE,
    MAP_KEYS,
    Bool,
    Number,
    Record,
    Sequence,
    all_of,
    any_of,
    implies,
    is_same,
    negation,
    same_truth,
)
from asyncjob_dev.proofs.rules.versions import COUNTERS, FINISHED, MAX_HISTORY, Promise, Seen


def _ever_claimed(job: Seen) -> Bool:
    """Return that a job knows its claim if, and only if, it has ever been claimed."""
    names = ("claim", "startTime", "firstStartTime", "effective")
    paths = [f"status.{name}" for name in names]
    named = all_of(job.has(*paths), negation(job.text("status.claim", "")))
    started = cast("Bool", job.number("status.attempt") > 0)
    running = implies(job.phase(Phase.RUNNING), all_of(started, job.has("status.lease")))
    return all_of(
        running, any_of(all_of(started, named), all_of(negation(started), job.has_none(*paths)))
    )


def _policy_obeys_the_job(job: Seen) -> Bool:
    names = {name: f"spec.{name}" for name in ("executionTimeoutSeconds", "leaseDurationSeconds")}
    for key, field in RetryPolicy.model_fields.items():
        names[field.alias or key] = f"spec.retryPolicy.{field.alias or key}"
    obeyed = (
        implies(
            all_of(job.has(path), job.has("status.effective")),
            is_same(job.entry(path).value, job.entry(f"status.effective.{name}").value),
        )
        for name, path in names.items()
    )
    return all_of(*obeyed)


def _lease_lasts_as_agreed(job: Seen) -> Bool:
    lasts, agreed = "status.lease.durationSeconds", "status.effective.leaseDurationSeconds"
    same = cast("Bool", job.number(lasts) == job.number(agreed))
    return implies(job.has("status.lease"), same)


REASONS_BY_PHASE: Final[dict[Phase, tuple[Reason, ...]]] = {
    Phase.QUEUED: (
        *(Reason.GATE_OPENED, Reason.START_TIME_REACHED, Reason.BACKOFF_ELAPSED),
        *(Reason.RELEASED, Reason.WORKER_GONE, Reason.REDRIVEN),
        *(Reason.LEASE_EXPIRED, Reason.WORKER_CRASHED, Reason.WAIT_OVER),
    ),
    Phase.PENDING: (
        *(Reason.WAITING_FOR_DEPENDENCY, Reason.SUSPENDED, Reason.QUEUE_PAUSED),
        *(Reason.CONCURRENCY_LIMIT, Reason.RATE_LIMIT, Reason.WAITING_FOR_SIGNAL),
        Reason.WAITING_FOR_CHILDREN,
    ),
    Phase.SCHEDULED: (Reason.NOT_BEFORE, Reason.SLEEPING),
    Phase.RUNNING: (),
    Phase.SUCCEEDED: (),
    Phase.RETRYING: (
        *(Reason.HANDLER_FAILED, Reason.RETRY_REQUESTED, Reason.EXECUTION_TIMEOUT),
        *(Reason.HANDLER_CRASHED, Reason.RELEASED, Reason.LEASE_EXPIRED),
        *(Reason.WORKER_CRASHED, Reason.WORKER_GONE),
    ),
    Phase.DEAD_LETTER: (
        *(Reason.QUEUE_TIMEOUT, Reason.UNKNOWN_TYPE, Reason.DEPENDENCY_FAILED),
        *(Reason.RETRIES_EXHAUSTED, Reason.CRASH_BUDGET_EXHAUSTED, Reason.NOT_RETRYABLE),
        *(Reason.INVALID_PAYLOAD, Reason.RESULT_REFUSED, Reason.EXECUTION_TIMEOUT),
    ),
    Phase.CANCELLED: (
        *(Reason.CANCEL_REQUESTED, Reason.DEADLINE_EXCEEDED),
        *(Reason.DUPLICATE, Reason.DISMISSED),
    ),
}


def _reason_fits(job: Seen) -> Bool:
    none = job.has_none("status.reason")
    may_lack = (Phase.QUEUED, Phase.RUNNING, Phase.SUCCEEDED)
    return all_of(
        *(
            implies(
                job.phase(phase),
                any_of(job.reason(*reasons), none if phase in may_lack else FALSE),
            )
            for phase, reasons in REASONS_BY_PHASE.items()
        )
    )


def _marked_as_finished(job: Seen) -> Bool:
    finished = job.phase(*FINISHED)
    return all_of(
        same_truth(job.has("status.completionTime"), finished),
        implies(job.has("status.durationSeconds"), finished),
    )


def _condition_fits(job: Seen) -> Bool:
    entry = job.entry("status.conditions")
    conditions = cast("Sequence", entry.value)
    first = Seen(cast("Record", conditions.entries[0]))
    types = {
        Phase.SUCCEEDED: "Complete",
        Phase.DEAD_LETTER: "Failed",
        Phase.CANCELLED: "Cancelled",
    }
    one = all_of(entry.present, cast("Bool", conditions.size == 1), first.text("status", "True"))
    return all_of(
        implies(entry.present, job.phase(*FINISHED)),
        *(
            implies(job.phase(phase), all_of(one, first.text("type", name)))
            for phase, name in types.items()
        ),
    )


def _waits_while_retrying(job: Seen) -> Bool:
    retrying = job.phase(Phase.RETRYING)
    names = ("status.retryDelaySeconds", "status.nextAttemptTime")
    return all_of(*(same_truth(job.has(name), retrying) for name in names))


def _result_by_success(job: Seen) -> Bool:
    succeeded, both = job.phase(Phase.SUCCEEDED), job.has("status.result", "status.resultRef")
    some = any_of(job.has("status.result"), job.has("status.resultRef"))
    return all_of(implies(some, succeeded), negation(both))


def _history_is_of_the_job(job: Seen) -> Bool:
    history, running = job.history, job.phase(Phase.RUNNING)
    parked, woken = job.has("status.waiting"), job.reason(Reason.WAIT_OVER)
    ends = [
        implies(
            cast("Bool", history.size == place + 1),
            is_same(
                Seen(cast("Record", entry)).entry("phase").value, job.entry("status.phase").value
            ),
        )
        for place, entry in enumerate(history.entries)
    ]
    empty = cast("Bool", history.size == 0)
    omitted = cast("Bool", job.number("status.historyOmitted") > 0)
    return all_of(
        any_of(running, parked, woken, all_of(*ends)),
        implies(empty, any_of(job.phase(Phase.QUEUED, Phase.RUNNING), parked)),
        implies(omitted, cast("Bool", history.size == MAX_HISTORY)),
    )


def _requests_are_answered(job: Seen) -> Bool:
    redrive, redrives = job.number("spec.redrive"), job.number("status.redrives")
    open_request = cast("Bool", redrive > redrives)
    return all_of(
        cast("Bool", redrives <= redrive),
        cast("Bool", job.number("status.reruns") <= job.number("spec.rerun")),
        implies(open_request, job.phase(Phase.DEAD_LETTER, Phase.CANCELLED)),
    )


def _cancelled_with_reason(job: Seen) -> Bool:
    return implies(
        job.phase(Phase.CANCELLED),
        any_of(
            job.flag("spec.cancel"),
            all_of(
                job.reason(Reason.DEADLINE_EXCEEDED),
                any_of(job.has("spec.notAfter"), job.has("spec.deadlineSeconds")),
            ),
            all_of(job.reason(Reason.DUPLICATE), job.has("spec.deduplicationId")),
        ),
    )


def _admitted_before_it_runs(job: Seen) -> Bool:
    admitted = job.flag("status.admitted")
    return all_of(
        implies(all_of(job.phase(Phase.RUNNING), job.gated), admitted),
        implies(job.has("status.admitted"), job.phase(Phase.QUEUED, Phase.RUNNING)),
    )


def _costs_come_from_attempts(job: Seen) -> Bool:
    attempts = job.number("status.attempt")
    ended = cast("Number", attempts - z3.If(job.phase(Phase.RUNNING), 1, 0))
    return all_of(*(cast("Bool", job.number(f"status.{name}") <= ended) for name in COUNTERS))


def _sleeps(job: Seen) -> Bool:
    return all_of(job.phase(Phase.SCHEDULED), job.reason(Reason.SLEEPING))


_PENDING_PARKS: Final = (Reason.WAITING_FOR_SIGNAL, Reason.WAITING_FOR_CHILDREN)
"""Why a parked job is Pending."""


def _is_parked(job: Seen) -> Bool:
    told = all_of(job.phase(Phase.PENDING), job.reason(*_PENDING_PARKS))
    return any_of(_sleeps(job), told)


def _sent_or_timed_out(job: Seen) -> Bool:
    """Return that no signal that was sent has timed out."""
    both = []
    for key in MAP_KEYS:
        wait = f"status.waits.{key}"
        timed_out = all_of(job.text(f"{wait}.kind", WaitKind.SIGNAL), job.has(f"{wait}.over"))
        both.append(all_of(job.has(f"spec.signals.{key}"), timed_out))
    return negation(any_of(*both))


STATES: Final = {
    "exclusive": Promise(
        "A job has a lease exactly while it is Running: two leases of one job never exist.",
        of_state=lambda job: same_truth(job.has("status.lease"), job.phase(Phase.RUNNING)),
    ),
    "claimed": Promise(
        "A job has an attempt, a claim id, start times and a policy exactly once it was claimed.",
        of_state=_ever_claimed,
    ),
    "policy": Promise(
        "The policy in force never contradicts what the job says.", of_state=_policy_obeys_the_job
    ),
    "lease-length": Promise(
        "A lease lasts as long as the policy in force says.", of_state=_lease_lasts_as_agreed
    ),
    "reason": Promise("The reason is one of its phase.", of_state=_reason_fits),
    "finished": Promise(
        "A job has a completion time exactly while it is finished.", of_state=_marked_as_finished
    ),
    "condition": Promise(
        "A finished job has the one condition of its phase; others have none.",
        of_state=_condition_fits,
    ),
    "retrying": Promise(
        "A job has a delay and a time of the next attempt exactly while it is Retrying.",
        of_state=_waits_while_retrying,
    ),
    "result": Promise(
        "Only a succeeded job has a result, in one place.", of_state=_result_by_success
    ),
    "history": Promise(
        "The history ends with the phase of the job, but for a park and what ends it, and omits "
        "nothing before it is full.",
        of_state=_history_is_of_the_job,
    ),
    "answered": Promise(
        "Redrives and reruns that happened were asked for; an open redrive is on a dead letter.",
        of_state=_requests_are_answered,
    ),
    "cancelled": Promise(
        "A cancelled job was to be cancelled, had a deadline, or had a deduplication id.",
        of_state=_cancelled_with_reason,
    ),
    "scheduled": Promise(
        "A Scheduled job has a start time, or is parked.",
        of_state=lambda job: implies(
            job.phase(Phase.SCHEDULED), any_of(job.has("spec.notBefore"), _sleeps(job))
        ),
    ),
    "waiting": Promise(
        "A job says what it is parked for exactly while it is Scheduled for Sleeping, or Pending "
        "for WaitingForSignal or WaitingForChildren.",
        of_state=lambda job: same_truth(job.has("status.waiting"), _is_parked(job)),
    ),
    "told": Promise("No signal has both been sent and timed out.", of_state=_sent_or_timed_out),
    "admitted": Promise(
        "A job with a gate runs only admitted, and no job is admitted elsewhere.",
        of_state=_admitted_before_it_runs,
    ),
    "costs": Promise(
        "Every retry, crash, release and park is that of an attempt of its own.",
        of_state=_costs_come_from_attempts,
    ),
}
"""Promises about each version of a job."""
