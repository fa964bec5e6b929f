"""Queues, cron jobs and workers as REST, the clients and the command line show them.

Models, and the functions that build them from the API server's objects. Pure.
"""

from datetime import datetime, timedelta
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from asyncjob.json_types import JsonObject, as_object, child, flag, integer, items, text
from asyncjob.lifecycle.timestamps import parse_timestamp, try_parse_timestamp
from asyncjob.models.base import Timestamp
from asyncjob.models.cron import (
    MAX_ACTIVE_RUNS,
    MAX_RUNS,
    AsyncCronJobSpec,
    AsyncCronJobStatus,
    Backfill,
)
from asyncjob.models.queue import AsyncQueueSpec
from asyncjob.names import DEFAULT_QUEUE
from asyncjob.rest.base import RequestModel, ResponseModel
from asyncjob.worker_lease import read_worker_lease


class QueueInfo(ResponseModel):
    """A queue: with an AsyncQueue object, or only with jobs or workers."""

    name: str
    """Its name."""

    namespace: str
    """Its namespace."""

    configured: bool
    """True if an AsyncQueue object exists; without one the queue is open and unlimited."""

    paused: bool = False
    """While true, no job of the queue starts."""

    drained: bool = False
    """True if the queue is paused and none of its jobs is running."""

    counts: dict[str, int] = Field(default_factory=dict)
    """Number of jobs by phase; phases without jobs may be absent."""

    oldest_queued_seconds: int | None = None
    """Seconds since the oldest job that could start was queued."""

    workers: int = 0
    """Number of live workers that serve the queue."""

    slots: int = 0
    """Number of jobs that these workers can run at the same time."""

    finished_per_minute: int | None = None
    """Number of jobs that finished within the last minute; known for configured queues."""

    spec: AsyncQueueSpec | None = None
    """Its limits and defaults."""


class CronJobInfo(ResponseModel):
    """A cron job."""

    name: str
    """Its name."""

    namespace: str
    """Its namespace."""

    schedule: str
    """Schedule: five fields or a name such as @daily."""

    time_zone: str
    """IANA name of the time zone of the schedule."""

    suspended: bool = False
    """While true, jobs are created only by trigger and backfill."""

    type: str
    """Type of its jobs."""

    queue: str
    """Queue of its jobs."""

    active: int = 0
    """Number of its unfinished jobs."""

    last_scheduled_at: str | None = None
    """The last scheduled time that a run was created for."""

    last_succeeded_at: str | None = None
    """When a job of it last succeeded."""

    next_scheduled_at: str | None = None
    """The next scheduled time."""

    reason: str | None = None
    """What the cron job did last, or why it does nothing."""

    message: str | None = None
    """Explanation of the reason."""

    spec: AsyncCronJobSpec | None = None
    """The whole spec, when a single cron job is requested."""

    status: AsyncCronJobStatus | None = None
    """The status, when a single cron job is requested."""


class BackfillAsk(RequestModel):
    """Runs of a cron job for a past range of time."""

    from_: Annotated[Timestamp, Field(alias="from")]
    """Start of the range, inclusive."""

    to: Timestamp
    """End of the range, inclusive. Times in the future are left to the schedule."""

    limit: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 100
    """Maximum number of runs; the operator rejects a range with more as a whole."""

    max_active: Annotated[int, Field(ge=1, le=MAX_ACTIVE_RUNS)] = 1
    """Maximum number of unfinished runs of the backfill. With Forbid and Replace: one run of the
    cron job in all."""

    replace: bool = False
    """Replace an earlier backfill that is still in progress."""

    @model_validator(mode="after")
    def _forwards(self) -> Self:
        if _parse_time(self.to) < _parse_time(self.from_):
            raise ValueError("to must not be before from")
        return self

    @property
    def spec_value(self) -> Backfill:
        """What is written into the cron job's spec."""
        return Backfill(from_=self.from_, to=self.to, limit=self.limit, max_active=self.max_active)


def _parse_time(text: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise ValueError(f"not a valid time: {text}") from error


class WorkerInfo(ResponseModel):
    """A registered worker process with a valid Lease."""

    name: str
    """Name of its Lease."""

    namespace: str
    """Its namespace."""

    pod: str
    """Its pod."""

    queue: str
    """Queue that it serves."""

    slots: int
    """Number of jobs that it can run at the same time."""

    running: int = 0
    """Number of jobs that it is running."""

    types: list[str] = Field(default_factory=list)
    """Types that it has handlers for."""

    version: str | None = None
    """Version of asyncjob that it runs, if reported."""

    seen_at: str
    """Last renewal of its Lease, by its own clock."""


_DEFAULT_LEASE_SECONDS: Final = 60
_MAX_CLOCK_SKEW: Final = timedelta(hours=1)
"""A worker's own clock writes its Lease; what is promised holds with clocks 10 minutes off."""


def queue_of(queue: JsonObject) -> QueueInfo:
    """Return an AsyncQueue as REST shows it."""
    meta, spec, status = child(queue, "metadata"), child(queue, "spec"), child(queue, "status")
    conditions = map(as_object, items(status, "conditions"))
    return QueueInfo(
        name=text(meta, "name"),
        namespace=text(meta, "namespace"),
        configured=True,
        paused=flag(spec, "paused"),
        drained=any(
            text(one, "type") == "Drained" and text(one, "status") == "True" for one in conditions
        ),
        counts={
            text(one, "phase"): integer(one, "count")
            for one in map(as_object, items(status, "counts"))
        },
        oldest_queued_seconds=_optional_integer(status, "oldestQueuedSeconds"),
        workers=integer(status, "workers"),
        slots=integer(status, "slots"),
        finished_per_minute=_optional_integer(status, "finishedPerMinute"),
        spec=AsyncQueueSpec.model_validate(spec),
    )


def cron_job_of(cron_job: JsonObject, *, detailed: bool = False) -> CronJobInfo:
    """Return an AsyncCronJob as REST shows it; `detailed` with spec and status."""
    meta = child(cron_job, "metadata")
    spec, status = child(cron_job, "spec"), child(cron_job, "status")
    job = child(child(spec, "jobTemplate"), "spec")
    return CronJobInfo.model_validate(
        {
            "name": meta.get("name"),
            "namespace": meta.get("namespace"),
            "schedule": spec.get("schedule"),
            "timeZone": text(spec, "timeZone", "UTC"),
            "suspended": flag(spec, "suspend"),
            "type": job.get("type"),
            "queue": text(job, "queue", DEFAULT_QUEUE),
            "active": integer(status, "activeCount"),
            "lastScheduledAt": status.get("lastScheduleTime"),
            "lastSucceededAt": status.get("lastSuccessfulTime"),
            "nextScheduledAt": status.get("nextScheduleTime"),
            "reason": status.get("reason"),
            "message": status.get("message"),
            "spec": AsyncCronJobSpec.model_validate(spec) if detailed else None,
            "status": AsyncCronJobStatus.model_validate(status) if detailed else None,
        }
    )


def worker_of(lease: JsonObject, *, running: int = 0) -> WorkerInfo:
    """Return the worker that a Lease registers; `running` is how many jobs its pod holds."""
    view = read_worker_lease(lease)
    return WorkerInfo(
        name=view.name,
        namespace=view.namespace,
        pod=view.pod,
        queue=view.registered_queue or view.queue_label,
        slots=view.slots,
        running=running,
        types=list(view.types or ()),
        version=view.release or None,
        seen_at=view.renew_time,
    )


def is_lease_expired(lease: JsonObject, now: datetime) -> bool:
    """Return whether a worker has withdrawn, or has missed its renewals by `now`.

    One whose time lies further ahead than any clock is wrong says nothing, either.
    """
    view = read_worker_lease(lease)
    duration = view.duration_seconds
    allowed = timedelta(seconds=_DEFAULT_LEASE_SECONDS if duration is None else duration)
    then = try_parse_timestamp(view.renew_time)
    if then is None or not view.worker:
        return True
    return now - then > allowed or then - now > _MAX_CLOCK_SKEW


def _optional_integer(status: JsonObject, name: str) -> int | None:
    return integer(status, name) if name in status else None
