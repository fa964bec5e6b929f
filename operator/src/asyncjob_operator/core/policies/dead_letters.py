"""Policies that make a waiting job which cannot start a dead letter.

The reasons are a dependency that can never be met, `queueTimeoutSeconds`, and a type that no live
worker of the queue lists. A dependency that failed may be redriven; once the dependent job is
redriven as well, it waits again. An unknown type also ends a job that has run before, as no queue
timeout would ever end its waiting.
"""

from typing import Final

from asyncjob.lifecycle.phase_change import dead_letter
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS, Category
from asyncjob_operator.core.decision import (
    ChangePhase,
    DependencyCycle,
    DependencyHasFailed,
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
"""Jobs that a message names at each end of a long cycle."""


def fail_on_dependency(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Make a job whose dependencies cannot be met a dead letter; a parked one has met them."""
    job, dependencies = snapshot.job, snapshot.dependencies
    if not dependencies.states or job.admitted or job.waiting:
        return None
    if dependencies.cycle:
        message = f"jobs wait for one another: {_cycle_text(dependencies.cycle)}"
        return _dependency_failed(snapshot, message, DependencyCycle(dependencies.cycle), now)
    if dependencies.failed_job:
        return _dependency_failed(
            snapshot,
            dependencies.failed_job.outcome,
            DependencyHasFailed(dependencies.failed_job),
            now,
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
    return _dependency_failed(snapshot, message, DependencyMissing(job.namespace, name), now)


def _dependency_failed(
    snapshot: Snapshot, message: str, precondition: Precondition, now: Now
) -> ChangePhase:
    change = dead_letter(
        snapshot.job,
        Reason.DEPENDENCY_FAILED,
        Category.DEPENDENCY,
        f"cannot start: {message}",
        now=now.timestamp,
    )
    return ChangePhase(DEPENDENCY, change, precondition)


def _cycle_text(cycle: tuple[RelatedJob, ...]) -> str:
    names = [job.name for job in (*cycle, cycle[0])]
    left_out = len(names) - 2 * CYCLE_ENDS_NAMED
    if left_out > 0:
        names[CYCLE_ENDS_NAMED:-CYCLE_ENDS_NAMED] = [f"({left_out} more)"]
    return " → ".join(names)


QUEUE_TIMEOUT: Final = "queue-timeout"


def enforce_queue_timeout(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Make a job a dead letter that no worker has claimed since its creation or redrive."""
    job, since = snapshot.job, snapshot.observation.claimable_since
    if since is None or not never_started(job):
        return None
    limit = _queue_timeout_seconds(snapshot)
    if now.monotonic < since + limit:
        return Wait(since + limit)
    message = f"no worker claimed it within {limit} s"
    change = dead_letter(job, Reason.QUEUE_TIMEOUT, Category.TIMEOUT, message, now=now.timestamp)
    return ChangePhase(QUEUE_TIMEOUT, change)


def _queue_timeout_seconds(snapshot: Snapshot) -> int:
    for seconds in (snapshot.job.queue_timeout_seconds, snapshot.queue.queue_timeout_seconds):
        if seconds is not None:
            return seconds
    return DEFAULT_QUEUE_TIMEOUT_SECONDS


UNKNOWN_TYPE: Final = "unknown-type"
MAX_TYPES_NAMED: Final = 5
"""Listed types that a message names."""


def reject_unknown_type(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Make a job a dead letter whose type has been unserved for too long while it was claimable."""
    job, unserved, claimable_since = (
        snapshot.job,
        snapshot.unserved_type,
        snapshot.observation.claimable_since,
    )
    if unserved is None or claimable_since is None or not snapshot.queue.dead_letters_unknown_types:
        return None
    due_at = max(unserved.since, claimable_since) + snapshot.options.unknown_type_delay
    if now.monotonic < due_at:
        return Wait(due_at)
    message = (
        f"no live worker of queue {job.queue} lists type {job.type}; {_listed_types(unserved)}"
    )
    change = dead_letter(job, Reason.UNKNOWN_TYPE, Category.NOT_FOUND, message, now=now.timestamp)
    return ChangePhase(UNKNOWN_TYPE, change, TypeUnserved(job.namespace, job.queue, job.type))


def _listed_types(unserved: UnservedType) -> str:
    workers = f"{unserved.live_workers} live worker{'s' if unserved.live_workers > 1 else ''}"
    verb = "list" if unserved.live_workers > 1 else "lists"
    more = len(unserved.listed_types) - MAX_TYPES_NAMED
    shown = ", ".join(unserved.listed_types[:MAX_TYPES_NAMED]) or "nothing"
    return f"{workers} {verb} {shown}" + (f" and {more} more" if more > 0 else "")
