"""Queues, cron jobs and workers as REST, the clients and the command line show them."""

from pydantic import Field

from asyncjob.models.cron import AsyncCronJobSpec, AsyncCronJobStatus
from asyncjob.models.queue import AsyncQueueSpec
from asyncjob.rest.wire import Answer


class QueueInfo(Answer):
    """A queue: one with an AsyncQueue object, or one that merely has jobs or workers."""

    name: str
    """Its name."""

    namespace: str
    """Its namespace."""

    configured: bool
    """Whether an AsyncQueue object exists; without one it is open and unlimited."""

    paused: bool = False
    """No job of it starts."""

    drained: bool = False
    """It is paused and none of its jobs runs."""

    counts: dict[str, int] = Field(default_factory=dict)
    """Jobs by phase; phases without jobs may be missing."""

    oldest_queued_seconds: int | None = None
    """How long the oldest job that could start has been queued."""

    workers: int = 0
    """Live workers that serve it."""

    slots: int = 0
    """How many jobs these workers run at once."""

    finished_per_minute: int | None = None
    """Jobs that finished within the last minute; known for configured queues."""

    spec: AsyncQueueSpec | None = None
    """Its limits and defaults."""


class CronJobInfo(Answer):
    """A schedule."""

    name: str
    """Its name."""

    namespace: str
    """Its namespace."""

    schedule: str
    """When, in five fields or by a name."""

    time_zone: str
    """Zone that the schedule is meant in."""

    suspended: bool = False
    """It creates no jobs but by trigger and backfill."""

    type: str
    """Type of its jobs."""

    queue: str
    """Queue of its jobs."""

    active: int = 0
    """Unfinished jobs of it."""

    last_scheduled_at: str | None = None
    """The last time that a run was created for."""

    last_succeeded_at: str | None = None
    """When a job of it last succeeded."""

    next_scheduled_at: str | None = None
    """The next time."""

    reason: str | None = None
    """What it did last, or what keeps it from doing anything."""

    message: str | None = None
    """The same in words."""

    spec: AsyncCronJobSpec | None = None
    """All of it, where one is asked for by name."""

    status: AsyncCronJobStatus | None = None
    """What it has done, where one is asked for by name."""


class WorkerInfo(Answer):
    """A worker process that has announced itself and has not fallen silent."""

    name: str
    """Name of its Lease."""

    namespace: str
    """Its namespace."""

    pod: str
    """Its pod."""

    queue: str
    """Queue that it serves."""

    slots: int
    """How many jobs it runs at once."""

    running: int = 0
    """How many it runs now."""

    types: list[str] = Field(default_factory=list)
    """Types that it has handlers for."""

    version: str | None = None
    """Version of asyncjob that it runs, where it says so."""

    seen_at: str
    """Its last sign of life, by its own clock."""
