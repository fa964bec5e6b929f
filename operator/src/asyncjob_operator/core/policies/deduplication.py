"""`spec.deduplicationId`: one of the live jobs with an id keeps it, the others are cancelled.

A job is admitted, or redriven, only once a live list has shown no other live job with its id. The
list comes after the version that the write goes by. So of two jobs that operators let through at
the same time, by however old views, the later list shows the other job: it was live by then.
"""

from bisect import bisect_left, insort
from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import cancel_waiting_job
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_operator.core.decision import (
    ChangePhase,
    DuplicateStillLive,
    NoLiveDuplicate,
    PolicyResult,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.snapshot import Snapshot, never_started

DedupRank = tuple[bool, str, str]


def takes_precedence(other: JobView, job: JobView) -> bool:
    """Return whether the other live job keeps the id rather than this one."""
    return dedup_rank(other) < dedup_rank(job)


def dedup_rank(job: JobView) -> DedupRank:
    """Return the sort key: jobs that have begun first, then by age; the UID breaks ties."""
    return (not _is_established(job), job.creation_timestamp, job.uid)


class DuplicateGroup:
    """The live jobs with one deduplication id, in the order in which they may keep it.

    Thousands may share an id. Each job is only compared with the first of the others, so that a
    change of any job affects at most the first two.
    """

    def __init__(self) -> None:
        self._ranked: list[DedupRank] = []

    def __bool__(self) -> bool:
        return bool(self._ranked)

    def add(self, job: JobView) -> None:
        """Add a live job."""
        insort(self._ranked, dedup_rank(job))

    def discard(self, job: JobView) -> None:
        """Remove a job, by the same view of it that was added."""
        position = bisect_left(self._ranked, dedup_rank(job))
        if position < len(self._ranked) and self._ranked[position] == dedup_rank(job):
            del self._ranked[position]

    def first_two(self) -> tuple[str, ...]:
        """Return the UIDs of the first two, or of as many as there are."""
        return tuple(uid for _, _, uid in self._ranked[:2])

    def first_other(self, uid: str) -> str | None:
        """Return the UID of the first job other than this one, or None."""
        return next((other for other in self.first_two() if other != uid), None)


def _is_established(job: JobView) -> bool:
    return job.phase is Phase.RUNNING or job.admitted or not never_started(job)


def sole_live_precondition(job: JobView) -> NoLiveDuplicate | None:
    """Return what a live list must confirm before the job may hold its deduplication id."""
    held = job.gates.deduplication_id
    return NoLiveDuplicate(job.namespace, job.uid, held) if held else None


def admission_precondition(job: JobView) -> NoLiveDuplicate | None:
    """Return what a live list must confirm before the job is admitted.

    A job that has begun since its creation or redrive has held its id ever since.
    """
    return sole_live_precondition(job) if never_started(job) else None


DUPLICATE: Final = "duplicate"


def cancel_duplicate(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job whose id another live job keeps."""
    job, holder = snapshot.job, snapshot.live_duplicate
    if holder is None or not takes_precedence(holder, job):
        return None
    message = f"{holder.name} is live and has the same deduplicationId"
    change = cancel_waiting_job(job, Reason.DUPLICATE, message, now=now.timestamp)
    return ChangePhase(
        DUPLICATE, change, DuplicateStillLive(holder.namespace, holder.name, holder.uid)
    )
