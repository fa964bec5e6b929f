"""Whether a job has run since its creation or last redrive."""

from asyncjob.lifecycle.view import JobView


def never_started(job: JobView) -> bool:
    """Return whether a waiting job has not run since its creation or redrive.

    Every way out of Running that leaves a job unfinished counts one of these up, and a redrive
    sets all three to zero.
    """
    return job.retries == 0 and job.crashes == 0 and job.releases == 0
