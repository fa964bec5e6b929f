"""Queues, schedules and workers as REST shows them, from the API server's objects. Pure."""

from datetime import datetime, timedelta
from typing import Final

from asyncjob.announcement import read_registration
from asyncjob.json_types import JsonObject, as_object, child, flag, integer, items, text, texts
from asyncjob.lifecycle.timestamps import try_parse_timestamp
from asyncjob.models.cron import AsyncCronJobSpec, AsyncCronJobStatus
from asyncjob.models.queue import AsyncQueueSpec
from asyncjob.names import DEFAULT_QUEUE, QUEUE_LABEL, WORKER_LEASE_PREFIX
from asyncjob.rest.surroundings import CronJobInfo, QueueInfo, WorkerInfo

_DEFAULT_LEASE_SECONDS: Final = 60


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
    """Return the worker that a Lease announces; `running` is how many jobs its pod holds."""
    meta, spec = child(lease, "metadata"), child(lease, "spec")
    about = read_registration(lease)
    return WorkerInfo(
        name=text(meta, "name"),
        namespace=text(meta, "namespace"),
        pod=text(meta, "name").removeprefix(WORKER_LEASE_PREFIX),
        queue=text(about, "queue") or text(child(meta, "labels"), QUEUE_LABEL),
        slots=integer(about, "slots"),
        running=running,
        types=list(texts(about, "types")),
        version=text(about, "version") or None,
        seen_at=text(spec, "renewTime"),
    )


def is_lease_expired(lease: JsonObject, now: datetime) -> bool:
    """Return whether a worker has withdrawn, or has missed its announcements by `now`."""
    spec = child(lease, "spec")
    seen = text(spec, "renewTime")
    allowed = timedelta(seconds=integer(spec, "leaseDurationSeconds", _DEFAULT_LEASE_SECONDS))
    then = try_parse_timestamp(seen)
    return then is None or not text(spec, "holderIdentity") or now - then > allowed


def _optional_integer(status: JsonObject, name: str) -> int | None:
    return integer(status, name) if name in status else None
