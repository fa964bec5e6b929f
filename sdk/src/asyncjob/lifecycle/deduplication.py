"""Who holds a deduplication id: the jobs that are live, and how a LIST finds them."""

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import FINISHED_PHASES


def is_live(job: JobView) -> bool:
    """Return whether the job holds its deduplication id."""
    return not job.finished and not job.deleting


def unfinished_with_id(deduplication_id: str) -> str:
    """Return the field selector of the unfinished jobs with the id.

    Some of them may not be live: no field tells that a job is being deleted.
    """
    unfinished = [f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES)]
    return ",".join([f"spec.deduplicationId={_escape(deduplication_id)}", *unfinished])


def _escape(value: str) -> str:
    """Return the text as the right side of a field selector takes it."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
