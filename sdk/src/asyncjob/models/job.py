"""AsyncJob: one durable asynchronous job, and its spec, which is what a user asks for.

Its status is in `job_status`.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

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
RequestParameters = Annotated[dict[str, ParameterValues], Field(max_length=64)]


class KeyRef(Model):
    """A key of a Secret or ConfigMap in the job's namespace."""

    name: ObjectName
    """Name of the object."""

    key: Annotated[str, Field(min_length=1, max_length=253)]
    """Key within its data."""


class PayloadSource(Model):
    """Where the payload comes from when it is not in the job itself. Exactly one is set."""

    secret_key_ref: KeyRef | None = None
    """A key of a Secret that holds JSON; the job's author must be allowed to read it."""

    config_map_key_ref: KeyRef | None = None
    """A key of a ConfigMap that holds JSON; the job's author must be allowed to read it."""

    uri: Annotated[str, Field(min_length=1, max_length=2048)] | None = None
    """A JSON object in a store that the worker may read, e.g. s3://bucket/a.json#sha256=…"""


class RequestData(Model):
    """Parts of the HTTP request that submitted the job, for its handler."""

    headers: RequestParameters | None = None
    """Request headers, each with its values."""

    route_params: RequestParameters | None = None
    """Parameters of the route, each with its values."""

    query_params: RequestParameters | None = None
    """Parameters of the query, each with its values."""


class DependencyOutcome(StrEnum):
    """Which end of a job satisfies a dependency on it."""

    SUCCEEDED = "Succeeded"
    ANY = "Any"


class Dependency(Model):
    """A job in the same namespace that has to finish first."""

    name: ObjectName
    """Name of the job."""

    outcome: DependencyOutcome = DependencyOutcome.SUCCEEDED
    """Succeeded: it has to succeed. Any: it has to finish, however."""

    children: bool | None = None
    """Its children have to finish so, too: the jobs whose label asyncjob.dev/parent has its UID."""


class JobReference(Model):
    """One particular job."""

    name: ObjectName
    """Its name."""

    uid: Uid
    """Its UID."""


class AsyncJobSpec(Model):
    """What is to be done. Immutable but for its wishes: cancel to rerun below, and priority."""

    type: JobType
    """Which handler runs the job, e.g. SEND_EMAIL or report.daily."""

    queue: QueueName = "default"
    """Queue that the job waits in. A queue without an AsyncQueue object is open and unlimited."""

    payload: FreeJson | None = None
    """Input of the handler: any JSON."""

    payload_from: PayloadSource | None = None
    """Where the payload comes from, instead of payload."""

    request: RequestData | None = None
    """What an HTTP submitter wants handed to the handler."""

    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Higher starts first. May be changed while the job is not running."""

    not_before: Timestamp | None = None
    """The job does not start before this time."""

    not_after: Timestamp | None = None
    """A job that has not started by this time is cancelled."""

    depends_on: Annotated[list[Dependency], Field(max_length=20)] | None = None
    """Jobs that have to finish first. They may be created later than this one."""

    queue_timeout_seconds: Seconds | None = None
    """A job that waits claimable for longer becomes a dead letter. Built in: 7200."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt, in seconds. Built in: 1800."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """The job is recovered when its worker is silent for so long. Built in: 60."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """How long a running handler may take to stop after cancel. Built in: 30."""

    retry_policy: RetryPolicy | None = None
    """How often and how fast a failed attempt is tried again."""

    ttl_seconds_after_finished: Seconds | None = None
    """The finished job is removed after so many seconds. Inherited from the queue's retention."""

    idempotency_key: Key | None = None
    """Key under which the job was submitted; the same key means the same job."""

    deduplication_id: Key | None = None
    """Of several live jobs with this id only one runs; a later one is cancelled as Duplicate."""

    concurrency_key: Key | None = None
    """Jobs with the same key share the queue's maxConcurrencyPerKey."""

    rerun_of: JobReference | None = None
    """The job that this one runs again."""

    traceparent: Annotated[str, Field(max_length=64)] | None = None
    """W3C trace context of the submitter."""

    cancel: bool | None = None
    """Cancel the job; cannot be taken back. On a dead letter: dismiss it."""

    cancel_cascade: bool | None = None
    """A cancel of this job also cancels its unfinished children and the jobs that wait for it."""

    suspend: bool | None = None
    """While true the job is not claimed; an attempt already running goes on."""

    redrive: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Raise it to run a dead letter again with fresh budgets. Not to be set at creation."""

    rerun: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Raise it to n to create a new job <name>-r<n> that does the same again. Not at creation."""


class AsyncJob(Model):
    """A durable asynchronous job, run by a worker that knows its type."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncJob"] = "AsyncJob"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncJobSpec
    """What is to be done."""

    status: AsyncJobStatus = Field(default_factory=AsyncJobStatus)
    """What has become of it."""
