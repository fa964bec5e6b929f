"""AsyncQueue: limits and defaults for the jobs of one queue.

A queue without one is open and unlimited.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from asyncjob.models.base import Count, Key, Model, ObjectMeta, RetryPolicy, Seconds, Timestamp, Uid
from asyncjob.models.job_status import Condition

Limit = Annotated[int, Field(ge=1, le=1_000_000)]
ConcurrencyLimit = Annotated[int, Field(ge=1, le=1000)]
"""Each reservation stands in the queue's status; the maximum bounds its size."""


class UnknownType(StrEnum):
    """What happens to a job for whose type no live worker of the queue has a handler."""

    WAIT = "Wait"
    DEAD_LETTER = "DeadLetter"


class RateLimit(Model):
    """Maximum number of starts in a period."""

    count: Limit
    """Maximum number of starts per period."""

    period_seconds: Annotated[int, Field(ge=1, le=86_400)] = 1
    """Length of the period, in seconds."""


class QueueDefaults(Model):
    """Values for the fields that a job of the queue leaves out."""

    queue_timeout_seconds: Seconds | None = None
    """A job that is claimable for longer than this becomes a dead letter."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt, in seconds."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """A job is recovered after this many seconds without a heartbeat."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """Seconds that a running handler has to stop after cancel."""

    retry_policy: RetryPolicy | None = None
    """When and how often a failed attempt is retried."""


class Retention(Model):
    """How long finished jobs are kept."""

    max_age_seconds: Seconds | None = None
    """Seconds after which finished jobs are deleted. Built in: 7 days, dead letters 30 days."""

    max_finished: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Maximum number of finished jobs; the oldest are deleted first. Built in: 10000."""

    min_age_seconds: Seconds | None = None
    """Seconds for which a finished job is kept in any case. Built in: 600."""


class AsyncQueueSpec(Model):
    """Limits and defaults of a queue."""

    paused: bool = False
    """While true, no job of the queue starts. Running jobs continue."""

    max_concurrency: ConcurrencyLimit | None = None
    """Maximum number of jobs of the queue that run at the same time."""

    max_concurrency_per_key: ConcurrencyLimit | None = None
    """Maximum number of jobs with the same concurrencyKey that run at the same time. With this
    limit at most 1000 jobs with a concurrencyKey run at the same time."""

    max_queued: Limit | None = None
    """Maximum number of waiting jobs; the gateway refuses further submissions."""

    unknown_type: UnknownType = UnknownType.WAIT
    """What happens to a job for whose type no live worker of the queue has a handler."""

    rate_limit: RateLimit | None = None
    """Maximum number of starts in a period."""

    priority_ageing_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    """Seconds of waiting that raise the effective priority of a job by one. Built in: never."""

    defaults: QueueDefaults | None = None
    """Values for the fields that a job of the queue leaves out."""

    retention: Retention | None = None
    """How long finished jobs are kept."""


class PhaseCount(Model):
    """Number of jobs of the queue in a phase."""

    phase: Annotated[str, Field(max_length=32)]
    """The phase."""

    count: Count
    """Number of jobs in this phase."""


class QueueReservation(Model):
    """A slot of a queue with limits, reserved for a job before it is admitted."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the job."""

    uid: Uid
    """UID of the job."""

    queued_time: Timestamp | None = None
    """When the job became Queued; absent: at its creation."""

    key: Key | None = None
    """concurrencyKey of the job."""

    time: Timestamp
    """When the slot was reserved."""

    resumes: bool | None = None
    """True if the job goes on after a wait without a slot: no start for the rate limit."""


class RecentStarts(Model):
    """Starts that count against the rate limit."""

    time: Timestamp
    """When the last of them was admitted."""

    count: Count
    """Number of starts."""


class AsyncQueueStatus(Model):
    """Observed state of the queue."""

    counts: Annotated[list[PhaseCount], Field(max_length=16)] | None = None
    """Number of jobs by phase."""

    oldest_queued_seconds: Count | None = None
    """Seconds since the oldest job that could start was queued."""

    workers: Count | None = None
    """Number of live workers that serve the queue."""

    slots: Count | None = None
    """Number of jobs that these workers can run at the same time."""

    finished_per_minute: Count | None = None
    """Number of jobs that finished within the last minute, with any outcome."""

    reservations: Annotated[list[QueueReservation], Field(max_length=1000)] | None = None
    """Reserved slots of a queue with limits."""

    recent_starts: Annotated[list[RecentStarts], Field(max_length=100)] | None = None
    """Starts that count against the rate limit."""

    conditions: Annotated[list[Condition], Field(max_length=8)] | None = None
    """Drained: the queue is paused and none of its jobs is running."""

    last_update_time: Timestamp | None = None
    """When this status was last updated."""


class AsyncQueue(Model):
    """Limits and defaults for the jobs of one queue."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncQueue"] = "AsyncQueue"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncQueueSpec = Field(default_factory=AsyncQueueSpec)
    """Limits and defaults."""

    status: AsyncQueueStatus = Field(default_factory=AsyncQueueStatus)
    """Observed state of the queue."""
