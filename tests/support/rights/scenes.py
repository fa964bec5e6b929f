"""What probes find before them: objects made by the admin, and what became of them."""

from typing import Any

from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, JOBS, QUEUES, collection_path, job_path
from support import builders
from support.identities import Worker
from support.lives import Life
from support.rights.happening import BrokenError
from support.rights.seats import Seat

FAILED = {"Retrying", "DeadLetter"}


def create_job(seat: Seat, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    """Create a job."""
    body = builders.job(name, **spec)
    body["metadata"]["labels"] = labels or {}
    return seat.admin.create(collection_path(seat.namespace, JOBS), body).object()


def create_queue(seat: Seat, name: str, **spec: Any) -> Any:
    """Create an AsyncQueue."""
    body = builders.queue(name, **spec)
    return seat.admin.create(collection_path(seat.namespace, QUEUES), body).object()


def create_cron_job(seat: Seat, name: str, **spec: Any) -> Any:
    """Create an AsyncCronJob, suspended but for its triggers."""
    body = builders.cron_job(name)
    body["spec"].update(suspend=True, **spec)
    return seat.admin.create(collection_path(seat.namespace, CRON_JOBS), body).object()


def read_job(seat: Seat, name: str) -> Any:
    """Return a job, or an empty object."""
    answer = seat.admin.get(job_path(seat.namespace, name))
    return answer.body if answer.accepted else {}


def phase(seat: Seat, name: str) -> str:
    """Return a job's phase."""
    found: str = read_job(seat, name).get("status", {}).get("phase", "")
    return found


def has_succeeded(seat: Seat, name: str) -> bool:
    """Return whether a job has succeeded; raises BrokenError if an attempt has failed."""
    status = read_job(seat, name)["status"]
    if status["phase"] in FAILED:
        raise BrokenError(status["message"])
    return bool(status["phase"] == "Succeeded")


def life(seat: Seat, name: str, worker: Seat) -> Life:
    """Return a job that another seat's worker takes to where it should be."""
    return Life(seat.namespace, name, seat.admin, as_worker(worker))


def as_worker(seat: Seat) -> Worker:
    """Return a worker's seat as the lives of jobs know workers."""
    return Worker(seat.holder.pod, seat.holder.pod_uid, seat.client)


def succeeded(seat: Seat, name: str, worker: Seat) -> str:
    """Create a job that has succeeded, and return its name."""
    made = life(seat, name, worker)
    made.create(payload={"n": 1})
    made.bring(Phase.SUCCEEDED)
    return name
