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
    """Which handler runs the job, e.g. SEND_EMAIL or report.daily."""

    payload: FreeJson | None = None
    """Input of the handler: any JSON."""

    payload_from: PayloadSource | None = None
    """Where the payload comes from, instead of payload."""

    name: ObjectName | None = None
    """The job's id. Without one it is a UUID; with an idempotencyKey it follows from that."""

    queue: QueueName = "default"
    """Queue that the job waits in."""

    labels: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels of the job, to select it by."""

    request: RequestData | None = None
    """Parts of a request to hand to the handler."""

    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Higher starts first."""

    not_before: Timestamp | None = None
    """The job does not start before this time."""

    not_after: Timestamp | None = None
    """A job that has not started by this time is cancelled."""

    depends_on: Annotated[list[Dependency], Field(max_length=20)] | None = None
    """Jobs that have to finish first."""

    queue_timeout_seconds: Seconds | None = None
    """A job that waits claimable for longer becomes a dead letter."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt, in seconds."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """The job is recovered when its worker is silent for so long."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """How long a running handler may take to stop after cancel."""

    retry_policy: RetryPolicy | None = None
    """How often and how fast a failed attempt is tried again."""

    ttl_seconds_after_finished: Seconds | None = None
    """The finished job is removed after so many seconds."""

    idempotency_key: Key | None = None
    """The same key with the same request is the same job; with another request it is refused."""

    deduplication_id: Key | None = None
    """Refused while another live job has this id."""

    concurrency_key: Key | None = None
    """Jobs with the same key share the queue's maxConcurrencyPerKey."""

    traceparent: Annotated[str, Field(max_length=64)] | None = None
    """W3C trace context of the submitter."""

    suspend: bool | None = None
    """While true the job is not claimed."""


class Batch(RequestModel):
    """Several jobs to be created. Each succeeds or fails by itself."""

    jobs: Annotated[list[Submission], Field(min_length=1, max_length=MAX_BATCH_JOBS)]
    """The jobs, at most 1000."""


class Submitted(ResponseModel):
    """What became of a submission."""

    id: str
    """The job's id, which is its name."""

    created: bool
    """Whether this submission created it; false: the same one had come before."""

    phase: str
    """Its phase as of now."""


class Refusal(ResponseModel):
    """Why one of a batch was not accepted."""

    status: int
    """The HTTP status that it would have had alone."""

    title: str
    """What kind of refusal it is."""

    detail: str
    """What is wrong, and the way out."""

    job_id: str | None = None
    """The existing job that stands in the way, if one does."""


class BatchItem(ResponseModel):
    """What became of one of a batch: one of the two is set."""

    job: Submitted | None = None
    """The job."""

    error: Refusal | None = None
    """Why there is none."""


class BatchReport(ResponseModel):
    """What became of a batch, in its order."""

    items: list[BatchItem]
    """One for each job of the batch."""

    accepted: int
    """How many were accepted."""

    refused: int
    """How many were not."""
