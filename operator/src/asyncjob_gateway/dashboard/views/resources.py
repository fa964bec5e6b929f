"""Cron jobs and workers as their pages show them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from asyncjob.rest.resources import CronJobInfo, WorkerInfo
from asyncjob_gateway.dashboard.formatting import DisplayTime, display_time
from asyncjob_gateway.dashboard.links import Links

MAX_WORKER_TYPES: Final = 30
"""How many types of a worker are shown."""


@dataclass(frozen=True, slots=True)
class CronRow:
    """One cron job."""

    name: str
    jobs_url: str
    schedule: str
    zone: str
    type: str
    queue: str
    queue_url: str
    suspended: bool
    active: int
    next: DisplayTime | None
    last: DisplayTime | None
    succeeded: DisplayTime | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker."""

    pod: str
    queue: str
    queue_url: str
    running: int
    slots: int
    types: list[str]
    more_types: int
    version: str
    seen: DisplayTime | None


def cron_rows(infos: Iterable[CronJobInfo], links: Links, now: datetime) -> list[CronRow]:
    """Return the view of all cron jobs; those that come next first, the suspended last."""
    rows = [_cron_row(info, links, now) for info in infos]
    return sorted(rows, key=lambda one: (one.next.exact if one.next else "~", one.name))


def _cron_row(info: CronJobInfo, links: Links, now: datetime) -> CronRow:
    return CronRow(
        name=info.name,
        jobs_url=links.jobs(cronJob=info.name),
        schedule=info.schedule,
        zone=info.time_zone,
        type=info.type,
        queue=info.queue,
        queue_url=links.jobs(queue=info.queue),
        suspended=info.suspended,
        active=info.active,
        next=None if info.suspended else display_time(info.next_scheduled_at, now),
        last=display_time(info.last_scheduled_at, now),
        succeeded=display_time(info.last_succeeded_at, now),
        reason=info.reason or "",
        message=info.message or "",
    )


def worker_rows(infos: Iterable[WorkerInfo], links: Links, now: datetime) -> list[WorkerRow]:
    """Return the view of all workers."""
    return [
        WorkerRow(
            pod=info.pod,
            queue=info.queue,
            queue_url=links.jobs(queue=info.queue),
            running=info.running,
            slots=info.slots,
            types=info.types[:MAX_WORKER_TYPES],
            more_types=max(0, len(info.types) - MAX_WORKER_TYPES),
            version=info.version or "",
            seen=display_time(info.seen_at, now),
        )
        for info in infos
    ]
