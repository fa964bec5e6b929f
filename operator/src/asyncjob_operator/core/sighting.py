"""What this replica first saw of a job, and when on its own monotonic clock.

Leases, backoffs, grace and timeouts are measured from these times alone, so that nobody's wall
clock can end them early. A sighting belongs to a replica and is never written anywhere.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.queue_view import QueueView

Stay: TypeAlias = tuple[Phase, int, str, str | None, float | None]
"""One stay in one phase: phase, attempt, claim, time of the transition, delay of the retry."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Times are monotonic seconds of this replica.

    `since`: this stay in this phase. `renewed_at`: the newest renewal, or the claim. `retry_at`:
    when a backoff is over. `cancel_at`: the wish to cancel. `claimable_since`: claimable without
    a break since then, None while it is not. `lacking_since`: waiting, without a break, for a job
    that does not exist. `unknown_since`: no worker of its queue, which has limits, knows its type.
    `whole`: this stay was seen from its beginning. `appeared_at`: when the job was created, if that
    was seen.
    """

    stay: Stay
    since: float
    renewals: int
    renewed_at: float
    retry_at: float | None = None
    cancel_at: float | None = None
    claimable_since: float | None = None
    lacking_since: float | None = None
    unknown_since: float | None = None
    whole: bool = False
    appeared_at: float | None = None


def sight(
    before: Sighting | None,
    job: JobView,
    queue: QueueView,
    now: Moment,
    *,
    live: bool,
    lacks: bool = False,
    known: bool = True,
) -> Sighting:
    """Return what is known after seeing the job now.

    `lacks` says that it waits for a job that does not exist, `live` that the job was seen as it
    changed, not found in a list as it may long have been. `known`: its queue has no limits, or
    workers that may know its type.
    """
    stay = _stay(job)
    if before is None or before.stay != stay:
        seen = _first_sight(before, stay, job, now, live=live)
        cancelled_before = before.cancel_at if before else None
    else:
        seen, cancelled_before = _heartbeat(before, job, now), before.cancel_at
    cancel_at = _since(cancelled_before, now, holds=job.wishes.cancel)
    waits = is_claimable(job, queue) or (not known and is_waiting(job, queue))
    claimable = _since(seen.claimable_since, now, holds=waits)
    lacking = _since(seen.lacking_since, now, holds=lacks)
    unknown = _since(before.unknown_since if before else None, now, holds=not known)
    told = (seen.cancel_at, seen.claimable_since, seen.lacking_since, seen.unknown_since)
    if told == (cancel_at, claimable, lacking, unknown):
        return seen
    return replace(
        seen,
        cancel_at=cancel_at,
        claimable_since=claimable,
        lacking_since=lacking,
        unknown_since=unknown,
    )


def is_claimable(job: JobView, queue: QueueView) -> bool:
    """Return whether a worker might claim the job as it is."""
    admitted = job.admitted or not (job.gated or queue.limited)
    return job.phase is Phase.QUEUED and admitted and not queue.paused


def is_waiting(job: JobView, queue: QueueView) -> bool:
    """Return whether the job is queued and its queue not paused; it may need a place yet."""
    return job.phase is Phase.QUEUED and not queue.paused


def _since(before: float | None, now: Moment, *, holds: bool) -> float | None:
    if not holds:
        return None
    return now.monotonic if before is None else before


def _stay(job: JobView) -> Stay:
    return (
        job.phase,
        job.attempt,
        job.claim,
        job.last_transition_time,
        job.retry_delay_seconds if job.phase is Phase.RETRYING else None,
    )


def _first_sight(
    before: Sighting | None, stay: Stay, job: JobView, now: Moment, *, live: bool
) -> Sighting:
    renewals = job.lease.renewals if job.lease else 0
    retry_at = None
    if job.phase is Phase.RETRYING:
        retry_at = now.monotonic + _backoff(job, now, live=live)
    return Sighting(
        stay,
        now.monotonic,
        renewals,
        now.monotonic,
        retry_at,
        whole=live,
        appeared_at=before.appeared_at if before else _appeared_at(job, now, live=live),
    )


def _appeared_at(job: JobView, now: Moment, *, live: bool) -> float | None:
    """Return when the job was created; one that has ended before is seen anew, but not new."""
    is_new = live and not job.finished and not job.redrives
    return now.monotonic if is_new else None


def _heartbeat(before: Sighting, job: JobView, now: Moment) -> Sighting:
    renewals = job.lease.renewals if job.lease else 0
    if renewals == before.renewals:
        return before
    return replace(before, renewals=renewals, renewed_at=now.monotonic)


def _backoff(job: JobView, now: Moment, *, live: bool) -> float:
    """Return the seconds still to wait; a restart of the operator must not begin a wait anew."""
    delay = job.retry_delay_seconds or 0.0
    if live or job.next_attempt_time is None:
        return delay
    return min(delay, max(0.0, now.until(job.next_attempt_time)))
