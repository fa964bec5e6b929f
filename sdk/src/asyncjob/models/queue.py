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
"""Each is written down in the queue's status, which has room for so many."""


class UnknownType(StrEnum):
    """What becomes of a job whose type no live worker of the queue knows."""

    WAIT = "Wait"
    DEAD_LETTER = "DeadLetter"


class RateLimit(Model):
    """At most so many starts in a period."""

    count: Limit
    """Starts per period."""

    period_seconds: Annotated[int, Field(ge=1, le=86_400)] = 1
    """Length of the period, in seconds."""


class QueueDefaults(Model):
    """What jobs of the queue inherit where they say nothing themselves."""

    queue_timeout_seconds: Seconds | None = None
    """A job that waits claimable for longer becomes a dead letter."""

    execution_timeout_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = None
    """Time limit of one attempt, in seconds."""

    lease_duration_seconds: Annotated[int, Field(ge=5, le=600)] | None = None
    """Duration of the lease, in seconds."""

    cancel_grace_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """How long a running handler may take to stop after cancel."""

    retry_policy: RetryPolicy | None = None
    """How often and how fast a failed attempt is tried again."""


class Retention(Model):
    """How long finished jobs are kept."""

    max_age_seconds: Seconds | None = None
    """Finished jobs are removed after so many seconds. Built in: 7 days, dead letters 30."""

    max_finished: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Of the finished jobs the newest so many are kept. Built in: 10000."""

    min_age_seconds: Seconds | None = None
    """No finished job is removed sooner. Built in: 600."""


class AsyncQueueSpec(Model):
    """Limits and defaults of a queue."""

    paused: bool = False
    """While true no job of the queue starts; running ones go on."""

    max_concurrency: ConcurrencyLimit | None = None
    """At most so many jobs of the queue run at once. Up to 1000."""

    max_concurrency_per_key: ConcurrencyLimit | None = None
    """At most so many jobs with the same concurrencyKey run at once; of all keys together 1000."""

    max_queued: Limit | None = None
    """The gateway refuses new jobs beyond so many waiting ones."""

    unknown_type: UnknownType = UnknownType.WAIT
    """What becomes of a job whose type no live worker of the queue knows."""

    rate_limit: RateLimit | None = None
    """At most so many starts in a period."""

    priority_ageing_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    """A waiting job counts one higher in priority for every so many seconds. Built in: never."""

    defaults: QueueDefaults | None = None
    """What jobs of the queue inherit."""

    retention: Retention | None = None
    """How long finished jobs are kept."""


class PhaseCount(Model):
    """How many jobs of the queue are in a phase."""

    phase: Annotated[str, Field(max_length=32)]
    """The phase."""

    count: Count
    """Its jobs."""


class QueueReservation(Model):
    """A place in a limited queue, taken for a job before it is admitted."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the job."""

    uid: Uid
    """UID of the job."""

    queued_time: Timestamp | None = None
    """Since when the job is Queued; absent: since its creation."""

    key: Key | None = None
    """Its concurrencyKey."""

    time: Timestamp
    """When it was taken."""


class RecentStarts(Model):
    """Starts that a rate limit still counts."""

    time: Timestamp
    """When the last of them was let through."""

    count: Count
    """How many."""


class AsyncQueueStatus(Model):
    """How the queue is doing."""

    counts: Annotated[list[PhaseCount], Field(max_length=16)] | None = None
    """Jobs by phase."""

    oldest_queued_seconds: Count | None = None
    """How long the oldest job that could start has been queued, in seconds."""

    workers: Count | None = None
    """Live workers that serve the queue."""

    slots: Count | None = None
    """How many jobs these workers run at once."""

    finished_per_minute: Count | None = None
    """Jobs that finished within the last minute, however."""

    reservations: Annotated[list[QueueReservation], Field(max_length=1000)] | None = None
    """Places taken in a queue with limits."""

    recent_starts: Annotated[list[RecentStarts], Field(max_length=100)] | None = None
    """What a rate limit counts."""

    conditions: Annotated[list[Condition], Field(max_length=8)] | None = None
    """Drained: it is paused and none of its jobs runs."""

    last_update_time: Timestamp | None = None
    """When the numbers were taken."""


class AsyncQueue(Model):
    """Limits and defaults for the jobs of one queue."""

    api_version: Literal["asyncjob.dev/v1alpha1"] = "asyncjob.dev/v1alpha1"
    kind: Literal["AsyncQueue"] = "AsyncQueue"
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    spec: AsyncQueueSpec = Field(default_factory=AsyncQueueSpec)
    """Limits and defaults."""

    status: AsyncQueueStatus = Field(default_factory=AsyncQueueStatus)
    """How the queue is doing."""
