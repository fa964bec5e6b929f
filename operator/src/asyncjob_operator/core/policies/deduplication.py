"""`spec.deduplicationId`: of several live jobs with one id one keeps it, others are cancelled."""

from bisect import bisect_left, insort
from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import cancel_waiting_job
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob_operator.core.decision import ChangePhase, DuplicateStillLive, PolicyResult
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.snapshot import Snapshot, never_started

DedupRank = tuple[bool, str, str]


def is_live(job: JobView) -> bool:
    """Return whether the job holds its deduplication id."""
    return not job.finished and not job.deleting


def takes_precedence(other: JobView, job: JobView) -> bool:
    """Return whether the other live job has the id rather than this one."""
    return dedup_rank(other) < dedup_rank(job)


def dedup_rank(job: JobView) -> DedupRank:
    """Sort who has begun before who has not, then the older first; the UID settles the rest."""
    return (not _is_established(job), job.creation_timestamp, job.uid)


class DuplicateGroup:
    """The live jobs with one deduplication id, in the order in which they may have it.

    Thousands may share an id. Each of them is judged by the first of the others alone, so that one
    that comes, goes or changes concerns at most the first two.
    """

    def __init__(self) -> None:
        self._ranked: list[DedupRank] = []

    def __bool__(self) -> bool:
        return bool(self._ranked)

    def add(self, job: JobView) -> None:
        """Take a live job in."""
        insort(self._ranked, dedup_rank(job))

    def discard(self, job: JobView) -> None:
        """Take a job out, by the same view of it that was taken in."""
        place = bisect_left(self._ranked, dedup_rank(job))
        if place < len(self._ranked) and self._ranked[place] == dedup_rank(job):
            del self._ranked[place]

    def first_two(self) -> tuple[str, ...]:
        """Return the UIDs of the first two, or of as many as there are."""
        return tuple(uid for _, _, uid in self._ranked[:2])

    def first_other(self, uid: str) -> str | None:
        """Return the UID of the first that is another job than this one, or None."""
        return next((other for other in self.first_two() if other != uid), None)


def _is_established(job: JobView) -> bool:
    return job.phase is Phase.RUNNING or job.admitted or not never_started(job)


DUPLICATE: Final = "duplicate"


def cancel_duplicate(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Cancel a job whose id belongs to another live job."""
    job, holder = snapshot.job, snapshot.live_duplicate
    if holder is None or not takes_precedence(holder, job):
        return None
    message = f"{holder.name} is live and has the same deduplicationId"
    move = cancel_waiting_job(job, Reason.DUPLICATE, message, now=now.timestamp)
    return ChangePhase(
        DUPLICATE, move, DuplicateStillLive(holder.namespace, holder.name, holder.uid)
    )
