"""The jobs that a live view shows: each as last seen, and how many are where. Pure."""

from collections import Counter

from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.job import JobSummary

MAX_JOBS = 200
"""Jobs kept in view; what finished longest ago goes first."""


class LiveJobs:
    """Jobs as last seen. A view of a queue that is busy must not grow for ever.

    One thread takes while another draws: copies of the dict are made in one step.
    """

    def __init__(self, max_jobs: int = MAX_JOBS) -> None:
        self._max_jobs = max_jobs
        self._jobs: dict[str, JobSummary] = {}

    def update(self, job: JobSummary) -> None:
        """See a job."""
        self._jobs.pop(job.uid, None)
        self._jobs[job.uid] = job
        if len(self._jobs) > self._max_jobs:
            self._evict_one()

    def _evict_one(self) -> None:
        finished = (uid for uid, job in self._jobs.items() if job.finished)
        del self._jobs[next(finished, next(iter(self._jobs)))]

    def newest(self) -> list[JobSummary]:
        """Return the jobs, the newest first; those created at once by name."""
        copied = list(self._jobs.values())
        by_name = sorted(copied, key=lambda job: job.id)
        return sorted(by_name, key=lambda job: job.created_at, reverse=True)

    def phase_summary(self) -> str:
        """Return how many are in which phase."""
        counts = Counter(job.phase for job in list(self._jobs.values()))
        return ", ".join(f"{counts[phase]} {phase.value}" for phase in Phase if counts[phase])
