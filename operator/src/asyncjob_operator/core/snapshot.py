"""Everything that a decision about one job may depend on.

The snapshot holds an observation: when, on its own monotonic clock, this replica first saw what
concerns the job. Leases, backoffs, grace periods and timeouts are measured from these times alone,
so that no wall clock can end them early. An observation belongs to one replica and is never stored
in the cluster.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decision import PolicyResult, RedriveRefusal
from asyncjob_operator.core.dependencies import NO_DEPENDENCIES, Dependencies
from asyncjob_operator.core.liveness import UNKNOWN_HOLDER, HolderStatus
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import OPEN_QUEUE, DecisionOptions, QueueView
from asyncjob_operator.core.workers import UnservedType

PhaseEntry: TypeAlias = tuple[Phase, int, str, str | None, float | None]
"""Identifies one stay in a phase: phase, attempt, claim, transition time, delay of the retry."""


@dataclass(frozen=True, slots=True)
class Observation:
    """When this replica saw what concerns a job; times are its monotonic seconds.

    A time ending in `since` holds without a break, and is None while its condition does not hold.
    """

    phase_entry: PhaseEntry
    """The stay in a phase that was seen last."""

    entered_at: float
    """When this stay was first seen."""

    renewals: int
    """The lease's counter of heartbeats, as seen last."""

    renewed_at: float
    """When that counter was seen to change, else when the stay was first seen."""

    retry_at: float | None = None
    """When the backoff of a retrying job is over."""

    cancel_requested_at: float | None = None
    """When `spec.cancel` was first seen."""

    claimable_since: float | None = None
    """Since when a worker might have claimed it, were there one for its type."""

    missing_dependency_since: float | None = None
    """Since when a job that it depends on has not existed."""

    unknown_type_since: float | None = None
    """Since when no worker of its queue, which has limits, has known its type."""

    seen_from_start: bool = False
    """Whether this stay was seen as it began, and not found in a list."""

    created_at: float | None = None
    """When the job was created, if that was seen."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of a job when a decision about it is taken."""

    job: JobView
    observation: Observation
    options: DecisionOptions
    queue: QueueView = OPEN_QUEUE
    holder: HolderStatus = UNKNOWN_HOLDER
    """What is known of the pod that holds the job's lease."""

    live_duplicate: JobView | None = None
    """The first of the other live jobs with the same deduplication id."""

    unserved_type: UnservedType | None = None
    """Set while no worker of the queue lists the job's type."""

    has_reservation: bool = False
    """Whether the job has a reservation in its queue, which has limits."""

    type_known: bool = True
    """Whether the workers of a queue with limits may know the type, as far as one can tell."""

    dependencies: Dependencies = NO_DEPENDENCIES
    refused_redrive: tuple[int, RedriveRefusal] | None = None
    """Value of `spec.redrive` that was refused and reported, and why."""

    rerun_retry_at: float = 0.0
    """When a rerun that could not be created may be tried again, in monotonic seconds."""


PolicyFunction: TypeAlias = Callable[[Snapshot, Now], PolicyResult]


def observe(
    previous: Observation | None,
    job: JobView,
    queue: QueueView,
    now: Now,
    *,
    just_changed: bool,
    dependency_missing: bool = False,
    type_known: bool = True,
) -> Observation:
    """Return the observation after seeing the job now.

    Args:
        previous: The observation so far, None if the job was not known.
        job: The job as it is now.
        queue: Its queue.
        now: When it is seen.
        just_changed: It was seen as it changed, not found in a list as it may have been for long.
        dependency_missing: It waits for a job that does not exist.
        type_known: Its queue has no limits, or has workers that may know its type.
    """
    entry = _phase_entry(job)
    if previous is None or previous.phase_entry != entry:
        observation = _new_observation(previous, entry, job, now, just_changed=just_changed)
    else:
        observation = _with_renewal(previous, job, now)
    cancel_at = _since(
        previous.cancel_requested_at if previous else None, now, holds=job.control.cancel
    )
    countable = is_claimable(job, queue) or (not type_known and awaits_claim(job, queue))
    claimable_since = _since(observation.claimable_since, now, holds=countable)
    missing_since = _since(observation.missing_dependency_since, now, holds=dependency_missing)
    unknown_since = _since(
        previous.unknown_type_since if previous else None, now, holds=not type_known
    )
    known = (
        observation.cancel_requested_at,
        observation.claimable_since,
        observation.missing_dependency_since,
        observation.unknown_type_since,
    )
    if known == (cancel_at, claimable_since, missing_since, unknown_since):
        return observation
    return replace(
        observation,
        cancel_requested_at=cancel_at,
        claimable_since=claimable_since,
        missing_dependency_since=missing_since,
        unknown_type_since=unknown_since,
    )


def _phase_entry(job: JobView) -> PhaseEntry:
    return (
        job.phase,
        job.attempt,
        job.claim,
        job.last_transition_time,
        job.retry_delay_seconds if job.phase is Phase.RETRYING else None,
    )


def _new_observation(
    previous: Observation | None,
    phase_entry: PhaseEntry,
    job: JobView,
    now: Now,
    *,
    just_changed: bool,
) -> Observation:
    renewals = job.lease.renewals if job.lease else 0
    retry_at = None
    if job.phase is Phase.RETRYING:
        retry_at = now.monotonic + _remaining_backoff(job, now, just_changed=just_changed)
    return Observation(
        phase_entry,
        now.monotonic,
        renewals,
        now.monotonic,
        retry_at,
        seen_from_start=just_changed,
        created_at=previous.created_at
        if previous
        else _created_at(job, now, just_changed=just_changed),
    )


def _created_at(job: JobView, now: Now, *, just_changed: bool) -> float | None:
    """Return when the job was created, if that is seen now; a redriven job is not new."""
    is_new = just_changed and not job.finished and not job.redrives
    return now.monotonic if is_new else None


def _with_renewal(previous: Observation, job: JobView, now: Now) -> Observation:
    renewals = job.lease.renewals if job.lease else 0
    if renewals == previous.renewals:
        return previous
    return replace(previous, renewals=renewals, renewed_at=now.monotonic)


def _remaining_backoff(job: JobView, now: Now, *, just_changed: bool) -> float:
    """Return the seconds still to wait; a restart of the operator must not restart a backoff."""
    delay = job.retry_delay_seconds or 0.0
    if just_changed or job.next_attempt_time is None:
        return delay
    return min(delay, max(0.0, now.seconds_until(job.next_attempt_time)))


def _since(previous: float | None, now: Now, *, holds: bool) -> float | None:
    if not holds:
        return None
    return now.monotonic if previous is None else previous


def is_claimable(job: JobView, queue: QueueView) -> bool:
    """Return whether a worker may claim the job as it is."""
    admitted = job.admitted or not (job.gated or queue.has_limits)
    return job.phase is Phase.QUEUED and admitted and not queue.paused


def awaits_claim(job: JobView, queue: QueueView) -> bool:
    """Return whether the job is queued and its queue not paused; it may lack the admission."""
    return job.phase is Phase.QUEUED and not queue.paused


def never_started(job: JobView) -> bool:
    """Return whether a waiting job has not run since its creation or redrive.

    Every way out of Running that leaves a job unfinished raises one of these counters, and a
    redrive resets all four.
    """
    return not (job.retries or job.crashes or job.releases or job.parks)
