"""What probes find before them: objects made by the admin, and what became of them."""

from typing import Any

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import ARRAYS, CRON_JOBS, JOBS, QUEUES, collection_path, job_path
from support.cluster.identities import Worker
from support.driven.lives import Life
from support.objects import builders
from support.rights.happening import BrokenError
from support.rights.principals import Principal

FAILED = {"Retrying", "DeadLetter"}


def create_job(
    principal: Principal, name: str, labels: dict[str, str] | None = None, **spec: Any
) -> Any:
    """Create a job."""
    body = builders.job(name, **spec)
    body["metadata"]["labels"] = labels or {}
    return principal.admin.create(collection_path(principal.namespace, JOBS), body).object()


def create_queue(principal: Principal, name: str, **spec: Any) -> Any:
    """Create an AsyncQueue."""
    body = builders.queue(name, **spec)
    return principal.admin.create(collection_path(principal.namespace, QUEUES), body).object()


def create_cron_job(principal: Principal, name: str, **spec: Any) -> Any:
    """Create an AsyncCronJob, suspended but for its triggers."""
    body = builders.cron_job(name)
    body["spec"].update(suspend=True, **spec)
    return principal.admin.create(collection_path(principal.namespace, CRON_JOBS), body).object()


def create_array(
    principal: Principal, name: str, labels: dict[str, str] | None = None, **spec: Any
) -> Any:
    """Create an AsyncArray."""
    body = builders.array(name, **spec)
    body["metadata"]["labels"] = labels or {}
    return principal.admin.create(collection_path(principal.namespace, ARRAYS), body).object()


def read_job(principal: Principal, name: str) -> Any:
    """Return a job, or an empty object."""
    answer = principal.admin.get(job_path(principal.namespace, name))
    return answer.body if answer.accepted else {}


def phase(principal: Principal, name: str) -> str:
    """Return a job's phase."""
    found: str = read_job(principal, name).get("status", {}).get("phase", "")
    return found


def has_succeeded(principal: Principal, name: str) -> bool:
    """Return whether a job has succeeded; raises BrokenError if an attempt has failed."""
    status = read_job(principal, name)["status"]
    if status["phase"] in FAILED:
        raise BrokenError(status["message"])
    return bool(status["phase"] == "Succeeded")


def life(principal: Principal, name: str, worker: Principal) -> Life:
    """Return a job that another principal's worker takes to where it should be."""
    return Life(principal.namespace, name, principal.admin, as_worker(worker))


def as_worker(principal: Principal) -> Worker:
    """Return a worker's principal as the lives of jobs know workers."""
    return Worker(principal.holder.pod, principal.holder.pod_uid, principal.client)


def succeeded(principal: Principal, name: str, worker: Principal) -> str:
    """Create a job that has succeeded, and return its name."""
    made = life(principal, name, worker)
    made.create(payload={"n": 1})
    made.bring(Phase.SUCCEEDED)
    return name
