"""Queues, schedules and workers as rows of a table. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import age, moment, since
from asyncjob.cli.looks import COLOURS
from asyncjob.cli.tables import NAMESPACE, Cell, Row, Table, led_by, row
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.surroundings import CronJobInfo, QueueInfo, WorkerInfo

_SHOWN: Final = (
    (Phase.QUEUED, "QUEUED"),
    (Phase.PENDING, "PENDING"),
    (Phase.SCHEDULED, "SCHEDULED"),
    (Phase.RUNNING, "RUNNING"),
    (Phase.RETRYING, "RETRYING"),
    (Phase.DEAD_LETTER, "DEAD"),
)
QUEUE_HEAD: Final = (
    *("NAME", "STATE", *(title for _, title in _SHOWN)),
    *("OLDEST", "WORKERS", "SLOTS", "PER-MINUTE", "LIMITS"),
)
CRON_HEAD: Final = (
    *("NAME", "SCHEDULE", "ZONE", "STATE", "TYPE", "QUEUE", "ACTIVE", "LAST", "NEXT", "WHY"),
)
WORKER_HEAD: Final = ("POD", "QUEUE", "RUNNING", "SLOTS", "VERSION", "SEEN", "TYPES")


def queue_table(queues: Iterable[QueueInfo], *, everywhere: bool | None = False) -> Table:
    """Return the table of queues; `everywhere`: of several namespaces, as the others here."""
    ranked = sorted(queues, key=lambda one: (one.namespace, one.name))
    return _table(QUEUE_HEAD, ranked, [_queue(one) for one in ranked], everywhere)


def _table(
    head: tuple[str, ...],
    things: Sequence[QueueInfo | CronJobInfo | WorkerInfo],
    rows: list[Row],
    everywhere: bool | None,  # noqa: FBT001 - private, and named where it comes from
) -> Table:
    table = Table(head, rows)
    return led_by(NAMESPACE, (one.namespace for one in things), table) if everywhere else table


def _queue(queue: QueueInfo) -> Row:
    oldest = queue.oldest_queued_seconds
    return row(
        Cell(queue.name, "bold"),
        state(queue),
        *(_count(queue, phase) for phase, _ in _SHOWN),
        "" if oldest is None else age(oldest),
        _workers(queue),
        str(queue.slots),
        "" if queue.finished_per_minute is None else str(queue.finished_per_minute),
        Cell(limits(queue), "dim"),
    )


def state(queue: QueueInfo) -> Cell:
    """Return whether its jobs start."""
    if queue.paused:
        return Cell("drained" if queue.drained else "paused", "yellow")
    return Cell("open", "green")


def _count(queue: QueueInfo, phase: Phase) -> Cell:
    count = queue.counts.get(phase, 0)
    return Cell(str(count), COLOURS[phase] if count else "dim")


def _workers(queue: QueueInfo) -> Cell:
    waiting = queue.counts.get(Phase.QUEUED, 0) and not queue.paused
    return Cell(str(queue.workers), "red" if waiting and not queue.workers else "")


def limits(queue: QueueInfo) -> str:
    """Return the limits in force, in few words."""
    spec = queue.spec
    if spec is None:
        return "" if queue.configured else "no AsyncQueue"
    rate = spec.rate_limit
    said = (
        (spec.max_concurrency, f"{spec.max_concurrency} at once"),
        (spec.max_concurrency_per_key, f"{spec.max_concurrency_per_key} per key"),
        (spec.max_queued, f"{spec.max_queued} waiting"),
        (rate, f"{rate.count} per {rate.period_seconds}s" if rate else ""),
    )
    return ", ".join(text for value, text in said if value)


def cron_table(
    crons: Iterable[CronJobInfo], now: datetime, *, everywhere: bool | None = False
) -> Table:
    """Return the table of schedules."""
    ranked = sorted(crons, key=lambda one: (one.namespace, one.name))
    return _table(CRON_HEAD, ranked, [_cron(one, now) for one in ranked], everywhere)


def _cron(cron: CronJobInfo, now: datetime) -> Row:
    return row(
        Cell(cron.name, "bold"),
        cron.schedule,
        cron.time_zone,
        Cell("suspended", "yellow") if cron.suspended else Cell("active", "green"),
        cron.type,
        cron.queue,
        str(cron.active),
        since(cron.last_scheduled_at, now),
        until(cron.next_scheduled_at, now),
        Cell(": ".join(filter(None, (cron.reason, cron.message))), "dim"),
    )


def until(time: str | None, now: datetime) -> str:
    """Return how long until then: `in 5m`."""
    then = moment(time)
    return f"in {age((then - now).total_seconds())}" if then else ""


def worker_table(
    workers: Iterable[WorkerInfo], now: datetime, *, everywhere: bool | None = False
) -> Table:
    """Return the table of workers."""
    ranked = sorted(workers, key=lambda one: (one.namespace, one.queue, one.pod))
    return _table(WORKER_HEAD, ranked, [_worker(one, now) for one in ranked], everywhere)


def _worker(worker: WorkerInfo, now: datetime) -> Row:
    full = worker.slots and worker.running >= worker.slots
    return row(
        Cell(worker.pod, "bold"),
        worker.queue,
        Cell(str(worker.running), "yellow" if full else ""),
        str(worker.slots),
        worker.version or "",
        since(worker.seen_at, now),
        Cell(", ".join(worker.types), "dim"),
    )
