"""Looks at the jobs until something has come true, and shows them meanwhile."""

import time
from collections.abc import Callable, Mapping

from asyncjob import AsyncJob
from asyncjob.lifecycle.phases import FINISHED
from asyncjob.names import JOBS, collection
from asyncjob_dev.controlplane import ControlPlane
from asyncjob_dev.demo.view import View

Jobs = Mapping[str, AsyncJob]

LOOK_SECONDS = 0.3


def read_jobs(plane: ControlPlane) -> Jobs:
    """Return all jobs by name, as the API server has them."""
    found = plane.api.get(collection("default", JOBS))["items"]
    jobs = [AsyncJob.model_validate(item) for item in found]
    return {job.metadata.name or "": job for job in jobs}


def watch_until(
    plane: ControlPlane, view: View, condition: Callable[[Jobs], bool], within: float
) -> bool:
    """Show `kubectl get asyncjobs` until the condition holds; False when it took too long."""
    deadline = time.monotonic() + within
    while True:
        holds = condition(read_jobs(plane))
        view.show(plane.kubectl("get", "asyncjobs").stdout)
        if holds or time.monotonic() >= deadline:
            return holds
        time.sleep(LOOK_SECONDS)


def is_finished(job: AsyncJob) -> bool:
    """Whether nothing more happens to the job by itself."""
    return job.status.phase in FINISHED
