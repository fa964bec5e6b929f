"""Which of several live jobs with one deduplication id may have it."""

from collections.abc import Iterable

from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.never_started import never_started


def is_live(job: JobView) -> bool:
    """Return whether the job holds its deduplication id."""
    return not job.finished and not job.deleting


def holder_before(job: JobView, others: Iterable[JobView]) -> JobView | None:
    """Return the live job that has the id rather than this one, or None."""
    first = min((other for other in others if is_live(other)), key=_rank, default=None)
    return first if first and _rank(first) < _rank(job) else None


def any_holder(others: Iterable[JobView]) -> JobView | None:
    """Return a live job that holds the id, or None."""
    return min((other for other in others if is_live(other)), key=_rank, default=None)


def _rank(job: JobView) -> tuple[bool, str, str]:
    """Sort who has begun before who has not, then the older first; the UID settles the rest."""
    return (not _established(job), job.created, job.uid)


def _established(job: JobView) -> bool:
    return job.phase is Phase.RUNNING or job.admitted or not never_started(job)
