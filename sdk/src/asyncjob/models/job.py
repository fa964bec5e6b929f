"""AsyncJob: one durable asynchronous job, and its spec, which is what a user asks for.

Its status is in `job_status`.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from asyncjob.lifecycle.policy import MAX_DEADLINE_SECONDS, MAX_PRIORITY
from asyncjob.lifecycle.signals import MAX_SIGNALS
from asyncjob.models.base import (
    FreeJson,
    JobType,
    Key,
    Model,
    ObjectMeta,
    ObjectName,
    QueueName,
    RetryPolicy,
    Seconds,
    Timestamp,
    Uid,
)
from asyncjob.models.job_status import AsyncJobStatus

ParameterValues = Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=16)]
MAX_SENDER_LENGTH = 512
"""Longest name of a user."""

RequestParameters = Annotated[dict[str, ParameterValues], Field(max_length=64)]


class KeyRef(Model):
    """A key of a Secret or ConfigMap in the job's namespace."""

    name: ObjectName
    """Name of the object."""

    key: Annotated[str, Field(min_length=1, max_length=253)]
    """Key within its data."""


class PayloadSource(Model):
    """Where the payload comes from when it is not in the job itself. Set exactly one field."""

    secret_key_ref: KeyRef | None = None
    """A key of a Secret that holds JSON. The job's author must be allowed to read the Secret."""

    config_map_key_ref: KeyRef | None = None
    """A key of a ConfigMap with JSON. The job's author must be allowed to read the ConfigMap."""

    uri: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    """A JSON object in a store that the worker can read, e.g. s3://bucket/a.json#sha256=…"""


class RequestData(Model):
    """Parts of the HTTP request that submitted the job, passed to the handler."""

    headers: RequestParameters | None = None
    """Request headers: a list of values for each name."""

    route_params: RequestParameters | None = None
    """Route parameters: a list of values for each name."""

    query_params: RequestParameters | None = None
    """Query parameters: a list of values for each name."""


class DependencyOutcome(StrEnum):
    """Which outcome of a job or an array satisfies a dependency on it."""

    SUCCEEDED = "Succeeded"
    ANY = "Any"


class Dependency(Model):
    """A job or an array in the same namespace that must finish first. Set name or array."""

    name: ObjectName | None = None
    """Name of the job."""

    array: ObjectName | None = None
    """Name of the array, in place of name."""

    outcome: DependencyOutcome = DependencyOutcome.SUCCEEDED
    """Succeeded: it must succeed. Any: it must finish, with any outcome."""

    children: bool | None = None
    """Also wait for the job's children (label asyncjob.dev/parent: its UID) to end likewise."""

    @property
    def called(self) -> str:
        """Return what people call it: its name, behind the word array if it is one."""
        return f"array {self.array}" if self.array else self.name or ""


class JobReference(Model):
    """A reference to one job."""

    name: ObjectName
    """Name of the job."""

    uid: Uid
    """UID of the job."""


class Signal(Model):
    """A message to the job. It is never changed."""

    payload: FreeJson | None = None
    """What it says: any JSON, 16 KiB at most."""

    sent_by: Annotated[str, Field(min_length=1, max_length=MAX_SENDER_LENGTH)]
    """Name of the user who has sent it, as the API server or the gateway has authenticated them."""

    sent_at: Timestamp | None = None
    """When it was sent, by the sender's clock."""


class JobOptions(Model):
    """Type, payload and options of a job: what its spec and a submission have in common."""

    type: JobType
    """Type of the job, which selects its handler, e.g. SEND_EMAIL or report.daily."""

    queue: QueueName = "default"
    """Name of the queue. A queue without an AsyncQueue object is open and unlimited."""

    payload: FreeJson | None = None
    """Input of the handler: any JSON."""

    payload_from: PayloadSource | None = None
    """Reads the payload from elsewhere. Excludes payload."""

    request: RequestData | None = None
    """Parts of the submitting HTTP request, passed to the handler."""

    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Jobs with a higher priority start first. Can be changed while the job is not running."""

    not_before: Timestamp | None = None
    """The job does not start before this time."""

    not_after: Timestamp | None = None
    """A job that has not started by this time is cancelled."""

    deadline_seconds: Annotated[int, Field(ge=1, le=MAX_DEADLINE_SECONDS)] | None = None
    """The job is cancelled if it has not finished this many seconds after its creation."""

    depends_on: Annotated[list[Dependency], Field(max_length=20)] | None = None
    """Jobs and arrays that must finish first. They may be created later than this job."""

    queue_timeout_seconds: Seconds | None = None
    """A job that is claimable for longer than this becomes a dead letter. Built in: 7200."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt, in seconds. Built in: 1800."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """The job is recovered after this many seconds without a heartbeat. Built in: 60."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """Seconds that a running handler has to stop after cancel. Built in: 30."""

    retry_policy: RetryPolicy | None = None
    """When and how often a failed attempt is retried."""

    ttl_seconds_after_finished: Seconds | None = None
    """Seconds after which the finished job is deleted. Default: the queue's retention."""

    idempotency_key: Key | None = None
    """A submission with the same key and request is the same job; another request is refused."""

    deduplication_id: Key | None = None
    """Only one unfinished job has this id; others are refused, or cancelled as Duplicate."""

    concurrency_key: Key | None = None
    """Jobs with the same key share the queue's maxConcurrencyPerKey."""

    traceparent: Annotated[str, Field(max_length=64)] | None = None
    """W3C trace context of the submitter."""

    suspend: bool | None = None
    """While true, the job is not claimed. A running attempt continues."""


class AsyncJobSpec(JobOptions):
    """What to run. Immutable but for cancel and the like, and for signals, which are only added."""

    rerun_of: JobReference | None = None
    """The job that this job is a rerun of."""

    cancel: bool | None = None
    """Cancels the job. Cannot be reverted. On a dead letter: dismisses it."""

    cancel_cascade: bool | None = None
    """Cancelling this job also cancels its unfinished children, arrays that its handler has
    submitted among them, and the jobs that depend on it."""

    redrive: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Increase it to run a dead letter again with fresh budgets. Leave it out at creation."""

    rerun: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Increase it to n to create a copy of the job named <name>-r<n>. Leave it out at creation."""

    signals: Annotated[dict[str, Signal], Field(max_length=MAX_SIGNALS)] | None = None
    """Signals that the job has been sent, by name; each is written once. Leave out at creation."""


class AsyncJob(Model):
    """A durable asynchronous job, run by a worker that has a handler for its type."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncJob"] = "AsyncJob"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncJobSpec
    """What to run."""

    status: AsyncJobStatus = Field(default_factory=AsyncJobStatus)
    """Observed state of the job."""
