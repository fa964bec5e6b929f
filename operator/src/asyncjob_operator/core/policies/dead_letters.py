"""Policies that turn a waiting job which cannot start into a dead letter.

The reasons: a dependency that can never be met, `queueTimeoutSeconds`, and a type that no live
worker of the queue lists. A dependency that failed may be redriven; redrive the dependent job as
well, and it waits again. An unknown type ends a job that has run before, too: no queue timeout
would ever end its waiting.
"""

from typing import Final

from asyncjob.lifecycle.phase_change import dead_letter
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS
from asyncjob_operator.core.decision import (
    ChangePhase,
    DependencyCycle,
    DependencyFailed,
    DependencyMissing,
    PolicyResult,
    Precondition,
    TypeUnserved,
    Wait,
)
from asyncjob_operator.core.dependencies import RelatedJob
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.snapshot import Snapshot, never_started
from asyncjob_operator.core.workers import UnservedType

DEPENDENCY: Final = "dependency"
CYCLE_ENDS_NAMED: Final = 3
"""Of a long cycle so many jobs are named at each end."""


def fail_on_dependency(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Give up a job whose dependencies cannot be met."""
    job, ties = snapshot.job, snapshot.dependencies
    if not ties.states or job.admitted:
        return None
    if ties.cycle:
        message = f"jobs wait for one another: {_cycle_text(ties.cycle)}"
        return _dead_letter(snapshot, message, DependencyCycle(ties.cycle), now)
    if ties.failed_job:
        return _dead_letter(
            snapshot, ties.failed_job.outcome, DependencyFailed(ties.failed_job), now
        )
    return _missing_too_long(snapshot, now)


def _missing_too_long(snapshot: Snapshot, now: Now) -> PolicyResult:
    job, since = snapshot.job, snapshot.observation.missing_dependency_since
    timeout = snapshot.options.missing_dependency_timeout
    if since is None or not timeout:
        return None
    if now.monotonic < since + timeout:
        return Wait(since + timeout)
    name = snapshot.dependencies.missing[0]
    message = f"{name} does not exist; waited {timeout:g} s for jobs that do not exist"
    return _dead_letter(snapshot, message, DependencyMissing(job.namespace, name), now)


def _dead_letter(
    snapshot: Snapshot, message: str, precondition: Precondition, now: Now
) -> ChangePhase:
    move = dead_letter(
        snapshot.job, Reason.DEPENDENCY_FAILED, f"cannot start: {message}", now=now.timestamp
    )
    return ChangePhase(DEPENDENCY, move, precondition)


def _cycle_text(cycle: tuple[RelatedJob, ...]) -> str:
    names = [one.name for one in (*cycle, cycle[0])]
    left_out = len(names) - 2 * CYCLE_ENDS_NAMED
    if left_out > 0:
        names[CYCLE_ENDS_NAMED:-CYCLE_ENDS_NAMED] = [f"({left_out} more)"]
    return " → ".join(names)


QUEUE_TIMEOUT: Final = "queue-timeout"


def enforce_queue_timeout(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Give up a job that no worker has claimed since its creation or redrive."""
    job, since = snapshot.job, snapshot.observation.claimable_since
    if since is None or not never_started(job):
        return None
    limit = _queue_timeout_seconds(snapshot)
    if now.monotonic < since + limit:
        return Wait(since + limit)
    message = f"no worker claimed it within {limit} s"
    return ChangePhase(
        QUEUE_TIMEOUT, dead_letter(job, Reason.QUEUE_TIMEOUT, message, now=now.timestamp)
    )


def _queue_timeout_seconds(snapshot: Snapshot) -> int:
    for seconds in (snapshot.job.queue_timeout_seconds, snapshot.queue.queue_timeout_seconds):
        if seconds is not None:
            return seconds
    return DEFAULT_QUEUE_TIMEOUT_SECONDS


UNKNOWN_TYPE: Final = "unknown-type"
MAX_TYPES_NAMED: Final = 5
"""So many of the types that are listed are named."""


def reject_unknown_type(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Give up a job whose type has been missing for as long as the job could be claimed."""
    job, missing, claimable = (
        snapshot.job,
        snapshot.unserved_type,
        snapshot.observation.claimable_since,
    )
    if missing is None or claimable is None or not snapshot.queue.dead_letters_unknown_types:
        return None
    due_at = max(missing.since, claimable) + snapshot.options.unknown_type_delay
    if now.monotonic < due_at:
        return Wait(due_at)
    message = f"no live worker of queue {job.queue} lists type {job.type}; {_listed_types(missing)}"
    move = dead_letter(job, Reason.UNKNOWN_TYPE, message, now=now.timestamp)
    return ChangePhase(UNKNOWN_TYPE, move, TypeUnserved(job.namespace, job.queue, job.type))


def _listed_types(unserved: UnservedType) -> str:
    who = f"{unserved.live_workers} live worker{'s' if unserved.live_workers > 1 else ''}"
    verb = "list" if unserved.live_workers > 1 else "lists"
    more = len(unserved.listed_types) - MAX_TYPES_NAMED
    shown = ", ".join(unserved.listed_types[:MAX_TYPES_NAMED]) or "nothing"
    return f"{who} {verb} {shown}" + (f" and {more} more" if more > 0 else "")
