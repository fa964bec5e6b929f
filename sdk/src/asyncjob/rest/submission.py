"""What a job is submitted with."""

from typing import Annotated

from pydantic import Field

from asyncjob.models.base import (
    FreeJson,
    JobType,
    Key,
    ObjectName,
    QueueName,
    RetryPolicy,
    Seconds,
    Timestamp,
)
from asyncjob.models.job import Dependency, PayloadSource, RequestData
from asyncjob.rest.base import RequestModel, ResponseModel

MAX_BATCH_JOBS: int = 1000
"""Most jobs in one batch."""

LabelValue = Annotated[str, Field(max_length=63)]


class Submission(RequestModel):
    """A job to be created: what `spec` of an AsyncJob takes at creation, and a name and labels.

    Field by field the same as `asyncjob.models.AsyncJobSpec`, which has the bounds' reasons.
    """

    type: JobType
    """Type of the job, which selects its handler, e.g. SEND_EMAIL or report.daily."""

    payload: FreeJson | None = None
    """Input of the handler: any JSON."""

    payload_from: PayloadSource | None = None
    """Reads the payload from elsewhere. Excludes payload."""

    name: ObjectName | None = None
    """The job's id. Default: derived from the idempotencyKey, or else a UUID."""

    queue: QueueName = "default"
    """Name of the queue."""

    labels: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels of the job, for label selectors."""

    request: RequestData | None = None
    """Parts of an HTTP request, passed to the handler."""

    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Jobs with a higher priority start first."""

    not_before: Timestamp | None = None
    """The job does not start before this time."""

    not_after: Timestamp | None = None
    """A job that has not started by this time is cancelled."""

    depends_on: Annotated[list[Dependency], Field(max_length=20)] | None = None
    """Jobs that must finish first."""

    queue_timeout_seconds: Seconds | None = None
    """A job that is claimable for longer than this becomes a dead letter."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt, in seconds."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """The job is recovered after this many seconds without a heartbeat."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """Seconds that a running handler has to stop after cancel."""

    retry_policy: RetryPolicy | None = None
    """When and how often a failed attempt is retried."""

    ttl_seconds_after_finished: Seconds | None = None
    """Seconds after which the finished job is deleted."""

    idempotency_key: Key | None = None
    """The same key with the same request returns the same job; another request is refused."""

    deduplication_id: Key | None = None
    """The submission is refused while another unfinished job has this id."""

    concurrency_key: Key | None = None
    """Jobs with the same key share the queue's maxConcurrencyPerKey."""

    traceparent: Annotated[str, Field(max_length=64)] | None = None
    """W3C trace context of the submitter."""

    suspend: bool | None = None
    """While true, the job is not claimed."""


class Batch(RequestModel):
    """Jobs to create. Each is accepted or refused independently."""

    jobs: Annotated[list[Submission], Field(min_length=1, max_length=MAX_BATCH_JOBS)]
    """The jobs, at most 1000."""


class Submitted(ResponseModel):
    """Result of a submission."""

    id: str
    """The job's id, which is its name."""

    created: bool
    """True if this submission created the job, false if it existed already."""

    phase: str
    """The current phase of the job."""


class Refusal(ResponseModel):
    """Why one job of a batch was refused."""

    status: int
    """HTTP status of the same submission outside a batch."""

    title: str
    """Type of the problem."""

    detail: str
    """What is wrong and how to fix it."""

    job_id: str | None = None
    """The existing job that conflicts with the submission, if any."""


class BatchItem(ResponseModel):
    """Result for one job of a batch. Exactly one of the two fields is set."""

    job: Submitted | None = None
    """The accepted job."""

    error: Refusal | None = None
    """Why the job was refused."""


class BatchReport(ResponseModel):
    """Results of a batch, in the order of its jobs."""

    items: list[BatchItem]
    """One result for each job of the batch."""

    accepted: int
    """Number of accepted jobs."""

    refused: int
    """Number of refused jobs."""
