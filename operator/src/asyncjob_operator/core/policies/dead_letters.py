"""Policies that make a waiting job which cannot start a dead letter.

The reasons are a dependency that can never be met, `queueTimeoutSeconds`, and a type that no live
worker of the queue lists. A dependency that failed may be redriven; once the dependent job is
redriven as well, it waits again. An unknown type also ends a job that has run before, as no queue
timeout would ever end its waiting.
"""

from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.phase_change import dead_letter
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS, Category
from asyncjob.names import ARRAY_KIND
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
from asyncjob_operator.core.dependencies import Dependencies, RelatedJob
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
    missing = Missing(
        snapshot.observation.missing_dependency_since, snapshot.options.missing_dependency_timeout
    )
    failed = dependency_failure(dependencies, job.namespace, missing, now)
    if not isinstance(failed, DependencyFailure):
        return failed
    change = dead_letter(
        job,
        Reason.DEPENDENCY_FAILED,
        Category.DEPENDENCY,
        failed.message,
        now=now.timestamp,
    )
    return ChangePhase(DEPENDENCY, change, failed.precondition)


@dataclass(frozen=True, slots=True)
class Missing:
    """How long what does not exist has been waited for, and may be; times in monotonic seconds."""

    since: float | None
    timeout: float


@dataclass(frozen=True, slots=True)
class DependencyFailure:
    """Why dependencies cannot be met, and what a live read must confirm of that."""

    message: str
    precondition: Precondition


def dependency_failure(
    dependencies: Dependencies, namespace: str, missing: Missing, now: Now
) -> DependencyFailure | Wait | None:
    """Return why a job or an array can never start, or until when what is missing may come."""
    if dependencies.cycle:
        message = f"cannot start: jobs wait for one another: {_cycle_text(dependencies.cycle)}"
        return DependencyFailure(message, DependencyCycle(dependencies.cycle))
    failed = dependencies.failed_job
    if failed:
        return DependencyFailure(f"cannot start: {failed.outcome}", DependencyHasFailed(failed))
    if missing.since is None or not missing.timeout:
        return None
    if now.monotonic < missing.since + missing.timeout:
        return Wait(missing.since + missing.timeout)
    first = dependencies.missing[0]
    what = "arrays" if first.kind == ARRAY_KIND else "jobs"
    message = (
        f"cannot start: {first.called} does not exist; waited {missing.timeout:g} s for {what} "
        "that do not exist"
    )
    return DependencyFailure(message, DependencyMissing(namespace, first.name, first.kind))


def _cycle_text(cycle: tuple[RelatedJob, ...]) -> str:
    names = [job.called for job in (*cycle, cycle[0])]
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
    message = f"no live worker of queue {job.queue} lists type {job.type}; {listed_types(unserved)}"
    change = dead_letter(job, Reason.UNKNOWN_TYPE, Category.NOT_FOUND, message, now=now.timestamp)
    return ChangePhase(UNKNOWN_TYPE, change, TypeUnserved(job.namespace, job.queue, job.type))


def listed_types(unserved: UnservedType) -> str:
    """Return what the live workers list instead: `2 live workers list a, b`."""
    workers = f"{unserved.live_workers} live worker{'s' if unserved.live_workers > 1 else ''}"
    verb = "list" if unserved.live_workers > 1 else "lists"
    more = len(unserved.listed_types) - MAX_TYPES_NAMED
    shown = ", ".join(unserved.listed_types[:MAX_TYPES_NAMED]) or "nothing"
    return f"{workers} {verb} {shown}" + (f" and {more} more" if more > 0 else "")
