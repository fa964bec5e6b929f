"""Reading one job."""

from asyncjob.client import errors
from asyncjob.client.ids import check_name
from asyncjob.client.steps import Call, Steps, call_with_retries
from asyncjob.errors import ForbiddenError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.names import job_path, queue_path
from asyncjob.rest.job import Job
from asyncjob.rest.reading import job_of


def job_path_of(namespace: str, job_id: str) -> str:
    """Return the path of a job; raises JobNotFoundError for what cannot be a job's id."""
    return job_path(namespace, check_name(job_id, errors.JobNotFoundError))


def get_job(namespace: str, job_id: str, patience: float) -> Steps[Job]:
    """Return the job; of one that waits, with what it waits for by its queue."""
    job = (
        yield from call_with_retries(Call("GET", job_path_of(namespace, job_id)), patience)
    ).object
    return job_of(job, (yield from _queue_of(namespace, job, patience)))


def _queue_of(namespace: str, job: JsonObject, patience: float) -> Steps[JsonObject | None]:
    """Return the AsyncQueue of a job that waits; without the right to read it, nothing."""
    phase = Phase(text(child(job, "status"), "phase", Phase.QUEUED))
    if phase in FINISHED_PHASES or phase is Phase.RUNNING:
        return None
    call = Call("GET", queue_path(namespace, text(child(job, "spec"), "queue", "default")))
    try:
        return (yield from call_with_retries(call, patience)).object
    except (ObjectNotFoundError, ForbiddenError):
        return None
