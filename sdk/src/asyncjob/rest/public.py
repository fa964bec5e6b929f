"""The small public contract: `POST /jobs` and `GET /jobs/{id}`, and nothing of how it is done."""

from enum import StrEnum
from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob.models.base import FreeJson, JobType, Key
from asyncjob.rest.wire import RequestModel, ResponseModel


class PublicStatus(StrEnum):
    """Where a job is, in the words of the public contract."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


PUBLIC_STATUS_BY_PHASE: Final = {
    Phase.PENDING: PublicStatus.PENDING,
    Phase.SCHEDULED: PublicStatus.PENDING,
    Phase.QUEUED: PublicStatus.PENDING,
    Phase.RETRYING: PublicStatus.PENDING,
    Phase.RUNNING: PublicStatus.RUNNING,
    Phase.SUCCEEDED: PublicStatus.COMPLETED,
    Phase.DEAD_LETTER: PublicStatus.FAILED,
    Phase.CANCELLED: PublicStatus.CANCELLED,
}


class PublicSubmission(RequestModel):
    """A job to be done."""

    job_type: JobType
    """Which handler runs it."""

    payload: FreeJson | None = None
    """Its input: any JSON."""

    idempotency_key: Key | None = None
    """The same key with the same request is the same job."""


class PublicAccepted(ResponseModel):
    """The job was accepted."""

    job_id: str
    """Its id."""

    status: PublicStatus
    """Where it is."""


class PublicJob(ResponseModel):
    """A job as the public sees it; nothing of payload, counters, workers, leases or traces."""

    job_id: str
    """Its id."""

    job_type: str
    """Which handler runs it."""

    status: PublicStatus
    """Where it is."""

    created_at: str
    """When it was created, RFC 3339."""

    updated_at: str
    """When it last changed, RFC 3339."""
