"""Rules of one job: what a version must be by itself, and what may follow it.

Written by hand from the documented life of a job, and not generated from the table that the API
server's rules come from.
"""

from collections.abc import Mapping
from typing import Final

from asyncjob.audit import catalog
from asyncjob.audit.catalog import Broken
from asyncjob.audit.job_version import STEADY_FIELDS, JobVersion
from asyncjob.json_types import JsonObject, child, integer

_CANCELS: Final = frozenset({"DeadlineExceeded", "CancelRequested", "Duplicate"})
_GIVEN_UP_WAITING: Final = frozenset({"QueueTimeout", "UnknownType", "DependencyFailed"})
_WITHOUT_REASON: Final = frozenset({""})

FAILED_WORKER: Final = frozenset({"LeaseExpired", "WorkerCrashed"})
TAKEN_AWAY: Final = FAILED_WORKER | {"WorkerGone"}
"""Reasons for which an attempt is taken from its worker, which only others can find."""

REPORTED: Final = frozenset(
    {
        "HandlerFailed",
        "RetryRequested",
        "HandlerCrashed",
        "Released",
        "Sleeping",
        "WaitingForSignal",
        "WaitingForChildren",
        "NotRetryable",
        "InvalidPayload",
        "ResultRefused",
    }
)
"""Reasons for which only the worker that holds a job ends an attempt."""

_UNRECORDED: Final = frozenset({"Sleeping", "WaitingForSignal", "WaitingForChildren", "WaitOver"})
"""Reasons of changes of phase that add nothing to the history."""

LEGAL_TRANSITIONS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "Queued": {
        "Running": _WITHOUT_REASON,
        "Scheduled": frozenset({"NotBefore"}),
        "Pending": frozenset(
            {
                "QueuePaused",
                "ConcurrencyLimit",
                "RateLimit",
                "WaitingForDependency",
                "Suspended",
            }
        ),
        "Cancelled": _CANCELS,
        "DeadLetter": _GIVEN_UP_WAITING,
    },
    "Pending": {
        "Queued": frozenset({"GateOpened", "WaitOver"}),
        "Cancelled": _CANCELS,
        "DeadLetter": _GIVEN_UP_WAITING,
    },
    "Scheduled": {
        "Queued": frozenset({"StartTimeReached", "WaitOver"}),
        "Cancelled": _CANCELS,
    },
    "Retrying": {"Queued": frozenset({"BackoffElapsed"}), "Cancelled": _CANCELS},
    "Running": {
        "Succeeded": _WITHOUT_REASON,
        "Retrying": TAKEN_AWAY
        | {"HandlerFailed", "RetryRequested", "ExecutionTimeout", "HandlerCrashed", "Released"},
        "Queued": TAKEN_AWAY | {"Released"},
        "Scheduled": frozenset({"Sleeping"}),
        "Pending": frozenset({"WaitingForSignal", "WaitingForChildren"}),
        "DeadLetter": frozenset(
            {
                "RetriesExhausted",
                "CrashBudgetExhausted",
                "NotRetryable",
                "InvalidPayload",
                "ResultRefused",
                "ExecutionTimeout",
            }
        ),
        "Cancelled": frozenset({"CancelRequested", "DeadlineExceeded"}),
    },
    "DeadLetter": {
        "Queued": frozenset({"Redriven"}),
        "Cancelled": frozenset({"Dismissed"}),
    },
    "Succeeded": {},
    "Cancelled": {},
}
_FINAL: Final = frozenset({"Succeeded", "Cancelled"})
_CONDITIONS: Final = {
    "Succeeded": ("Complete",),
    "DeadLetter": ("Failed",),
    "Cancelled": ("Cancelled",),
}
_FIRST_START: Final = STEADY_FIELDS.index("firstStartTime")
MAX_HISTORY: Final = 20

_POLICY_FIELDS: Final = ("executionTimeoutSeconds", "leaseDurationSeconds")


def check_created(now: JobVersion) -> Broken:
    """Judge the first version of a job whose creation was seen."""
    if now.phase != "Queued" or now.claim or now.admitted:
        yield catalog.JOB_CREATED, f"created {now.phase}, with claim {now.claim or 'none'}"
    counters = {
        "attempt": now.attempt,
        "retries": now.retries,
        "crashes": now.crashes,
        "releases": now.releases,
        "parks": now.parks,
        "redrives": now.redrives,
        "reruns": now.reruns,
    }
    if any(counters.values()):
        grown = ", ".join(f"{name} {value}" for name, value in counters.items() if value)
        yield catalog.JOB_CREATED, f"created with {grown}"


def check_version(now: JobVersion) -> Broken:
    """Judge a version by itself."""
    phase = now.phase
    if phase not in LEGAL_TRANSITIONS:
        yield catalog.JOB_TRANSITION, f"phase {phase} is unknown"
        return
    if bool(now.lease) != (phase == "Running"):
        yield catalog.LEASE_HOLDER, f"{phase} {'with' if now.lease else 'without'} a lease"
    if now.has_completion != now.finished:
        presence = "with" if now.has_completion else "without"
        yield catalog.JOB_FINISHED, f"{phase} {presence} completionTime"
    if now.conditions != _CONDITIONS.get(phase, ()):
        conditions = ", ".join(now.conditions) or "none"
        yield catalog.JOB_FINISHED, f"{phase} with conditions: {conditions}"
    if now.has_result and phase != "Succeeded":
        yield catalog.FENCING_EFFECT, f"{phase} with a result"
    if now.has_retry_delay != (phase == "Retrying"):
        presence = "with" if now.has_retry_delay else "without"
        yield catalog.JOB_REASON, f"{phase} {presence} retryDelaySeconds"
    if len(now.history) > MAX_HISTORY:
        yield catalog.JOB_HISTORY, f"{len(now.history)} entries"


def check_change(was: JobVersion, now: JobVersion) -> Broken:
    """Judge two versions in a row."""
    yield from _check_spec(was, now)
    if was.phase == now.phase:
        yield from _check_same_phase(was, now)
    else:
        yield from _check_phase_change(was, now)
    if was.phase == "Queued" and now.phase == "Running":
        yield from _check_claim(was, now)
    else:
        if now.attempt != was.attempt:
            yield (
                catalog.CLAIM_ATTEMPT_NUMBER,
                f"attempt went from {was.attempt} to {now.attempt} without a claim",
            )
        if now.claim != was.claim:
            yield catalog.CLAIM_UNIQUE, f"the claim became {now.claim or 'none'} without a claim"
    yield from _check_counters(was, now)
    yield from _check_effects(was, now)


def check_across_gap(was: JobVersion, now: JobVersion) -> Broken:
    """Judge two versions between which some may be missing: what grows, and what stays."""
    yield from _check_spec(was, now)
    if was.phase in _FINAL and now.phase != was.phase:
        yield catalog.JOB_TRANSITION, f"{was.phase} became {now.phase} in the end"
    if was.phase in _FINAL and now.frozen != was.frozen:
        yield catalog.JOB_FINISHED, f"the status of a {was.phase} job changed"
    if now.attempt < was.attempt:
        yield catalog.CLAIM_ATTEMPT_NUMBER, f"attempt shrank from {was.attempt} to {now.attempt}"
    if now.attempt == was.attempt and now.claim != was.claim:
        yield catalog.CLAIM_UNIQUE, f"attempt {now.attempt} has another claim than before"
    if now.attempt > was.attempt and now.claim == was.claim:
        yield catalog.CLAIM_UNIQUE, f"attempt {now.attempt} has the claim of an earlier one"
    if now.redrives < was.redrives or now.reruns < was.reruns:
        yield catalog.JOB_COUNTERS, "redrives or reruns shrank"


def _check_spec(was: JobVersion, now: JobVersion) -> Broken:
    if now.fixed != was.fixed:
        yield catalog.JOB_SPEC, "another field of the spec changed than the control fields"
    if was.cancel and not now.cancel:
        yield catalog.JOB_SPEC, "cancel was taken back"
    if now.redrive < was.redrive:
        yield catalog.JOB_SPEC, f"redrive shrank from {was.redrive} to {now.redrive}"
    if now.rerun < was.rerun:
        yield catalog.JOB_SPEC, f"rerun shrank from {was.rerun} to {now.rerun}"


def _check_same_phase(was: JobVersion, now: JobVersion) -> Broken:
    if now.finished and now.frozen != was.frozen:
        yield catalog.JOB_FINISHED, f"the status of a {now.phase} job changed"
    if now.lease != was.lease and now.lease and was.lease:
        yield (
            catalog.LEASE_HOLDER,
            f"the lease went from {was.lease[2]} to {now.lease[2]} without a claim",
        )
    if now.renewals < was.renewals:
        yield catalog.LEASE_HOLDER, f"renewals shrank from {was.renewals} to {now.renewals}"
    if now.reason != was.reason and now.phase != "Pending":
        yield (
            catalog.JOB_REASON,
            f"the reason went from {was.reason or 'none'} to {now.reason or 'none'} within a phase",
        )
    if now.history != was.history or now.history_omitted != was.history_omitted:
        yield catalog.JOB_HISTORY, "the history changed without a change of phase"
    if now.steady != was.steady:
        changed = [
            name
            for name, old, new in zip(STEADY_FIELDS, was.steady, now.steady, strict=True)
            if old != new
        ]
        yield catalog.FENCING_EFFECT, f"{', '.join(changed)} changed within phase {now.phase}"
    if was.admitted and not now.admitted:
        yield catalog.QUEUE_ADMISSION, "the admission was withdrawn within a phase"


def _check_phase_change(was: JobVersion, now: JobVersion) -> Broken:
    reasons = LEGAL_TRANSITIONS.get(was.phase, {}).get(now.phase)
    if reasons is None:
        yield catalog.JOB_TRANSITION, f"the phase went from {was.phase} to {now.phase}"
    elif now.reason not in reasons:
        reason = now.reason or "without a reason"
        yield catalog.JOB_REASON, f"from {was.phase} to {now.phase}: {reason}"
    yield from _check_history(was, now)
    if was.phase == "Running" and now.admitted:
        yield catalog.QUEUE_ADMISSION, f"still admitted after Running, in {now.phase}"


def _check_history(was: JobVersion, now: JobVersion) -> Broken:
    if now.phase == "Running":
        if now.history != was.history:
            yield catalog.JOB_HISTORY, "a claim changed the history"
        return
    if now.reason in _UNRECORDED:
        if now.history != was.history:
            yield catalog.JOB_HISTORY, "a park, or the end of one, changed the history"
        return
    known = len(was.history) + was.history_omitted
    grown = len(now.history) + now.history_omitted
    if grown != known + 1:
        yield catalog.JOB_HISTORY, f"the history went from {known} to {grown} entries"
    elif now.history[:-1] != was.history[1 - len(now.history) :] and len(now.history) > 1:
        yield catalog.JOB_HISTORY, "earlier entries of the history changed"
    elif now.last_entry != now.phase:
        yield catalog.JOB_HISTORY, f"the newest entry is {now.last_entry} in phase {now.phase}"


def _check_claim(was: JobVersion, now: JobVersion) -> Broken:
    if now.attempt != was.attempt + 1:
        yield (
            catalog.CLAIM_ATTEMPT_NUMBER,
            f"a claim raised attempt from {was.attempt} to {now.attempt}",
        )
    if not now.claim or now.claim == was.claim:
        yield catalog.CLAIM_UNIQUE, f"a claim with the id {now.claim or 'none'} of the one before"
    if now.renewals:
        yield catalog.LEASE_HOLDER, f"a new lease with {now.renewals} renewals"
    if now.suspend or now.cancel:
        yield catalog.JOB_GATE, f"claimed although {'suspended' if now.suspend else 'cancelled'}"
    if now.gated and not was.admitted:
        yield catalog.JOB_GATE, "claimed without the admission that its spec demands"
    if was.steady[_FIRST_START] and now.steady[_FIRST_START] != was.steady[_FIRST_START]:
        yield catalog.FENCING_EFFECT, "a later claim changed firstStartTime"


def _check_park_counted(was: JobVersion, now: JobVersion) -> Broken:
    parked = was.phase == "Running" and now.phase in {"Scheduled", "Pending"}
    if parked and now.parks == was.parks:
        yield catalog.JOB_COUNTERS, "a park was not counted"


def _check_requeue_counted(was: JobVersion, now: JobVersion) -> Broken:
    crashes, releases = now.crashes - was.crashes, now.releases - was.releases
    if now.reason not in FAILED_WORKER:
        if (crashes, releases) != (0, 1):
            yield catalog.JOB_COUNTERS, "a release was not counted, or not as one"
    elif (crashes, releases) != (1, 0) or was.crashes:
        yield catalog.JOB_COUNTERS, f"requeued at once after crash {now.crashes} ({now.reason})"


def _check_counters(was: JobVersion, now: JobVersion) -> Broken:
    redriven = was.phase == "DeadLetter" and now.phase == "Queued"
    ended = was.phase == "Running" and now.phase != "Running"
    spent = 0
    for name, old, new in (
        ("retries", was.retries, now.retries),
        ("crashes", was.crashes, now.crashes),
        ("releases", was.releases, now.releases),
        ("parks", was.parks, now.parks),
    ):
        if redriven and new:
            yield catalog.JOB_COUNTERS, f"{name} is {new} after a redrive"
        elif not redriven and (new - old not in {0, 1} or (new != old and not ended)):
            yield catalog.JOB_COUNTERS, f"{name} went from {old} to {new}"
        spent += new - old
    if ended and now.phase == "Retrying" and spent == 0:
        yield catalog.JOB_COUNTERS, "an attempt is retried and nothing was spent"
    if ended and now.phase == "Queued":
        yield from _check_requeue_counted(was, now)
    yield from _check_park_counted(was, now)
    if (now.redrives != was.redrives) != redriven or now.redrives < was.redrives:
        yield catalog.JOB_COUNTERS, f"redrives went from {was.redrives} to {now.redrives}"
    if now.reruns < was.reruns or now.reruns > max(was.reruns, now.rerun):
        yield catalog.JOB_COUNTERS, f"reruns went from {was.reruns} to {now.reruns}"


def _check_effects(was: JobVersion, now: JobVersion) -> Broken:
    """Judge what an attempt leaves behind: from its holder, while it holds."""
    changed = [
        name
        for name, old, new in (
            ("checkpoint", was.checkpoint, now.checkpoint),
            ("progress", was.progress, now.progress),
        )
        if old != new
    ]
    if not changed:
        return
    if was.phase != "Running":
        yield (
            catalog.FENCING_EFFECT,
            f"{' and '.join(changed)} changed while the job was {was.phase}",
        )
    elif now.phase != "Running" and now.reason in TAKEN_AWAY:
        yield (
            catalog.FENCING_EFFECT,
            f"{' and '.join(changed)} changed as the job was taken away ({now.reason})",
        )


def check_deadline(was: JobVersion, now: JobVersion, tolerance: float) -> Broken:
    """Judge a cancellation for the deadline, by the API server's times, in whole seconds."""
    ended = was.phase != now.phase and now.reason == "DeadlineExceeded"
    if ended and now.deadline and now.written and now.written + tolerance < now.deadline:
        early = now.deadline - now.written
        yield catalog.JOB_DEADLINE, f"cancelled for its deadline {early:g} s before that"


def check_policy(was: JobVersion, now: JobVersion, obj: JsonObject) -> Broken:
    """Judge the policy of an attempt; asked for claims and for ends of attempts."""
    spec, effective = child(obj, "spec"), child(child(obj, "status"), "effective")
    if was.phase == "Queued" and now.phase == "Running":
        wanted = {name: spec[name] for name in _POLICY_FIELDS if name in spec}
        for name, value in {**wanted, **child(spec, "retryPolicy")}.items():
            if effective.get(name) != value:
                difference = f"effective.{name} is {effective.get(name)}, the spec says {value}"
                yield catalog.JOB_POLICY, difference
        if now.lease and now.lease[4] != effective.get("leaseDurationSeconds"):
            yield catalog.JOB_POLICY, f"the lease lasts {now.lease[4]} s against the policy"
    elif now.retries > was.retries and now.retries > integer(effective, "maxRetries"):
        yield (
            catalog.JOB_POLICY,
            f"{now.retries} retries, {integer(effective, 'maxRetries')} are allowed",
        )
