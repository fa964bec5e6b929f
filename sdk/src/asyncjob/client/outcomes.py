"""What `wait` makes of the job that it has followed to its end."""

from asyncjob.client.errors import JobFailedError, JobGoneError
from asyncjob.rest.job import Job


def check_outcome(job: Job | None, job_id: str, *, raise_on_failure: bool) -> Job:
    """Return the job; raises JobFailedError if it did not succeed and that is wished."""
    if job is None:
        raise JobGoneError(f"nothing was seen of job {job_id}")
    if raise_on_failure and not job.succeeded:
        raise JobFailedError(job)
    return job
