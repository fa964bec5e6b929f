"""Everything that a decision about one job may look at.

The snapshot holds an observation: what this replica first saw of the job, and when on its own
monotonic clock. Leases, backoffs, grace periods and timeouts are measured from these times alone,
so that no wall clock can end them early. An observation belongs to one replica and is never
written anywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.decision import PolicyResult
from asyncjob_operator.core.dependencies import NO_DEPENDENCIES, Dependencies
from asyncjob_operator.core.liveness import UNKNOWN_HOLDER, HolderStatus
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import OPEN_QUEUE, DecisionOptions, QueueView
from asyncjob_operator.core.workers import UnservedType


def never_started(job: JobView) -> bool:
    """Return whether a waiting job has not run since its creation or redrive.

    Every way out of Running that leaves a job unfinished counts one of these up, and a redrive
    sets all three to zero.
    """
    return job.retries == 0 and job.crashes == 0 and job.releases == 0


PhaseEntry: TypeAlias = tuple[Phase, int, str, str | None, float | None]
"""One stay in one phase: phase, attempt, claim, time of the transition, delay of the retry."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Times are monotonic seconds of this replica.

    `entered_at`: this stay in this phase. `renewed_at`: the newest renewal, or the claim.
    `retry_at`: when a backoff is over. `cancel_requested_at`: the wish to cancel.
    `claimable_since`: claimable without a break since then, None while it is not.
    `missing_dependency_since`: waiting, without a break, for a job that does not exist.
    `unknown_type_since`: no worker of its queue, which has limits, knows its type.
    `seen_from_start`: this stay was seen from its beginning. `created_at`: when the job was
    created, if that was seen.
    """

    phase_entry: PhaseEntry
    entered_at: float
    renewals: int
    renewed_at: float
    retry_at: float | None = None
    cancel_requested_at: float | None = None
    claimable_since: float | None = None
    missing_dependency_since: float | None = None
    unknown_type_since: float | None = None
    seen_from_start: bool = False
    created_at: float | None = None


def observe(
    previous: Observation | None,
    job: JobView,
    queue: QueueView,
    now: Now,
    *,
    live: bool,
    dependency_missing: bool = False,
    type_known: bool = True,
) -> Observation:
    """Return what is known after seeing the job now.

    `dependency_missing` says that it waits for a job that does not exist, `live` that the job was
    seen as it changed, not found in a list as it may long have been. `type_known`: its queue has no
    limits, or workers that may know its type.
    """
    stay = _phase_entry(job)
    if previous is None or previous.phase_entry != stay:
        seen = _new_observation(previous, stay, job, now, live=live)
        cancelled_before = previous.cancel_requested_at if previous else None
    else:
        seen, cancelled_before = _with_renewal(previous, job, now), previous.cancel_requested_at
    cancel_at = _since(cancelled_before, now, holds=job.control.cancel)
    waits = is_claimable(job, queue) or (not type_known and is_waiting(job, queue))
    claimable = _since(seen.claimable_since, now, holds=waits)
    lacking = _since(seen.missing_dependency_since, now, holds=dependency_missing)
    unknown = _since(previous.unknown_type_since if previous else None, now, holds=not type_known)
    told = (
        seen.cancel_requested_at,
        seen.claimable_since,
        seen.missing_dependency_since,
        seen.unknown_type_since,
    )
    if told == (cancel_at, claimable, lacking, unknown):
        return seen
    return replace(
        seen,
        cancel_requested_at=cancel_at,
        claimable_since=claimable,
        missing_dependency_since=lacking,
        unknown_type_since=unknown,
    )


def is_claimable(job: JobView, queue: QueueView) -> bool:
    """Return whether a worker might claim the job as it is."""
    admitted = job.admitted or not (job.gated or queue.has_limits)
    return job.phase is Phase.QUEUED and admitted and not queue.paused


def is_waiting(job: JobView, queue: QueueView) -> bool:
    """Return whether the job is queued and its queue not paused; it may need a place yet."""
    return job.phase is Phase.QUEUED and not queue.paused


def _since(previous: float | None, now: Now, *, holds: bool) -> float | None:
    if not holds:
        return None
    return now.monotonic if previous is None else previous


def _phase_entry(job: JobView) -> PhaseEntry:
    return (
        job.phase,
        job.attempt,
        job.claim,
        job.last_transition_time,
        job.retry_delay_seconds if job.phase is Phase.RETRYING else None,
    )


def _new_observation(
    previous: Observation | None, phase_entry: PhaseEntry, job: JobView, now: Now, *, live: bool
) -> Observation:
    renewals = job.lease.renewals if job.lease else 0
    retry_at = None
    if job.phase is Phase.RETRYING:
        retry_at = now.monotonic + _remaining_backoff(job, now, live=live)
    return Observation(
        phase_entry,
        now.monotonic,
        renewals,
        now.monotonic,
        retry_at,
        seen_from_start=live,
        created_at=previous.created_at if previous else _created_at(job, now, live=live),
    )


def _created_at(job: JobView, now: Now, *, live: bool) -> float | None:
    """Return when the job was created; one that has ended before is seen anew, but not new."""
    is_new = live and not job.finished and not job.redrives
    return now.monotonic if is_new else None


def _with_renewal(previous: Observation, job: JobView, now: Now) -> Observation:
    renewals = job.lease.renewals if job.lease else 0
    if renewals == previous.renewals:
        return previous
    return replace(previous, renewals=renewals, renewed_at=now.monotonic)


def _remaining_backoff(job: JobView, now: Now, *, live: bool) -> float:
    """Return the seconds still to wait; a restart of the operator must not begin a wait anew."""
    delay = job.retry_delay_seconds or 0.0
    if live or job.next_attempt_time is None:
        return delay
    return min(delay, max(0.0, now.seconds_until(job.next_attempt_time)))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known of a job when it is decided about.

    `live_duplicate` is the first of the other live jobs with the same deduplication id, if any.
    `unserved_type` is set while no worker of the queue lists the job's type. `has_reservation`: the
    job has a place in its queue, if that has limits. `type_known`: the workers of a queue with
    limits may know its type, as far as one can tell. `refused_redrive`: the value of spec.redrive
    that was refused and said so. `rerun_retry_at`: until then a rerun that could not be created is
    left alone, monotonic.
    """

    job: JobView
    observation: Observation
    options: DecisionOptions
    queue: QueueView = OPEN_QUEUE
    holder: HolderStatus = UNKNOWN_HOLDER
    live_duplicate: JobView | None = None
    unserved_type: UnservedType | None = None
    has_reservation: bool = False
    type_known: bool = True
    dependencies: Dependencies = NO_DEPENDENCIES
    refused_redrive: int = 0
    rerun_retry_at: float = 0.0


Policy: TypeAlias = Callable[[Snapshot, Now], PolicyResult]
