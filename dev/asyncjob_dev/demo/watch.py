"""Looks at the jobs until something has come true, and shows them meanwhile."""

import time
from collections.abc import Callable, Mapping

from asyncjob import AsyncJob
from asyncjob.lifecycle.phases import FINISHED_PHASES
from asyncjob.names import JOBS, collection_path
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.demo.view import View

Jobs = Mapping[str, AsyncJob]

POLL_SECONDS = 0.3


def read_jobs(plane: ControlPlane) -> Jobs:
    """Return all jobs by name, as the API server has them."""
    found = plane.api.get(collection_path("default", JOBS))["items"]
    jobs = [AsyncJob.model_validate(item) for item in found]
    return {job.metadata.name or "": job for job in jobs}


def watch_until(
    plane: ControlPlane,
    view: View,
    condition: Callable[[Jobs], bool],
    stall_timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Show `kubectl get asyncjobs` until the condition holds.

    False once nothing has moved for `patience` seconds: a busy machine may take its time.
    """
    before, moved = None, clock()
    while True:
        jobs = read_jobs(plane)
        holds = condition(jobs)
        view.show(plane.kubectl("get", "asyncjobs").stdout)
        if (now := {name: _state(job) for name, job in jobs.items()}) != before:
            before, moved = now, clock()
        if holds or clock() - moved >= stall_timeout:
            return holds
        sleep(POLL_SECONDS)


def _state(job: AsyncJob) -> tuple[object, ...]:
    """Return what moves when a job gets on; renewals of its lease are no progress."""
    return job.status.phase, job.status.attempt, job.status.progress, job.status.checkpoint


def is_finished(job: AsyncJob) -> bool:
    """Whether nothing more happens to the job by itself."""
    return job.status.phase in FINISHED_PHASES
