"""Queues, cron jobs and workers as tables. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from asyncjob.cli.durations import human_duration, parse_time, time_since
from asyncjob.cli.output.job_table import PHASE_COLOURS
from asyncjob.cli.output.tables import NAMESPACE_HEADING, Cell, Row, Table, prepend_column, row
from asyncjob.lifecycle.phases import Phase
from asyncjob.rest.resources import CronJobInfo, QueueInfo, WorkerInfo

_PHASE_COLUMNS: Final = (
    (Phase.QUEUED, "QUEUED"),
    (Phase.PENDING, "PENDING"),
    (Phase.SCHEDULED, "SCHEDULED"),
    (Phase.RUNNING, "RUNNING"),
    (Phase.RETRYING, "RETRYING"),
    (Phase.DEAD_LETTER, "DEAD"),
)
QUEUE_HEADINGS: Final = (
    *("NAME", "STATE", *(title for _, title in _PHASE_COLUMNS)),
    *("OLDEST", "WORKERS", "SLOTS", "PER-MINUTE", "LIMITS"),
)
CRON_JOB_HEADINGS: Final = (
    *("NAME", "SCHEDULE", "ZONE", "STATE", "TYPE", "QUEUE", "ACTIVE", "LAST", "NEXT", "WHY"),
)
WORKER_HEADINGS: Final = ("POD", "QUEUE", "RUNNING", "SLOTS", "VERSION", "SEEN", "TYPES")


def queue_table(queues: Iterable[QueueInfo], *, everywhere: bool | None = False) -> Table:
    """Return the table of queues; `everywhere`: of several namespaces, as the others here."""
    ranked = sorted(queues, key=lambda one: (one.namespace, one.name))
    return _with_namespaces(QUEUE_HEADINGS, ranked, [_queue_row(one) for one in ranked], everywhere)


def _with_namespaces(
    headings: tuple[str, ...],
    things: Sequence[QueueInfo | CronJobInfo | WorkerInfo],
    rows: list[Row],
    everywhere: bool | None,  # noqa: FBT001 - private, and named where it comes from
) -> Table:
    table = Table(headings, rows)
    return (
        prepend_column(NAMESPACE_HEADING, (one.namespace for one in things), table)
        if everywhere
        else table
    )


def _queue_row(queue: QueueInfo) -> Row:
    oldest = queue.oldest_queued_seconds
    return row(
        Cell(queue.name, "bold"),
        queue_state(queue),
        *(_phase_count(queue, phase) for phase, _ in _PHASE_COLUMNS),
        "" if oldest is None else human_duration(oldest),
        _worker_count(queue),
        str(queue.slots),
        "" if queue.finished_per_minute is None else str(queue.finished_per_minute),
        Cell(queue_limits(queue), "dim"),
    )


def queue_state(queue: QueueInfo) -> Cell:
    """Return whether its jobs start."""
    if queue.paused:
        return Cell("drained" if queue.drained else "paused", "yellow")
    return Cell("open", "green")


def _phase_count(queue: QueueInfo, phase: Phase) -> Cell:
    count = queue.counts.get(phase, 0)
    return Cell(str(count), PHASE_COLOURS[phase] if count else "dim")


def _worker_count(queue: QueueInfo) -> Cell:
    waiting = queue.counts.get(Phase.QUEUED, 0) and not queue.paused
    return Cell(str(queue.workers), "red" if waiting and not queue.workers else "")


def queue_limits(queue: QueueInfo) -> str:
    """Return the limits in force, in few words."""
    spec = queue.spec
    if spec is None:
        return "" if queue.configured else "no AsyncQueue"
    rate = spec.rate_limit
    parts = (
        (spec.max_concurrency, f"{spec.max_concurrency} at once"),
        (spec.max_concurrency_per_key, f"{spec.max_concurrency_per_key} per key"),
        (spec.max_queued, f"{spec.max_queued} waiting"),
        (rate, f"{rate.count} per {rate.period_seconds}s" if rate else ""),
    )
    return ", ".join(text for value, text in parts if value)


def cron_job_table(
    crons: Iterable[CronJobInfo], now: datetime, *, everywhere: bool | None = False
) -> Table:
    """Return the table of cron jobs."""
    ranked = sorted(crons, key=lambda one: (one.namespace, one.name))
    return _with_namespaces(
        CRON_JOB_HEADINGS, ranked, [_cron_job_row(one, now) for one in ranked], everywhere
    )


def _cron_job_row(cron: CronJobInfo, now: datetime) -> Row:
    return row(
        Cell(cron.name, "bold"),
        cron.schedule,
        cron.time_zone,
        Cell("suspended", "yellow") if cron.suspended else Cell("active", "green"),
        cron.type,
        cron.queue,
        str(cron.active),
        time_since(cron.last_scheduled_at, now),
        time_until(cron.next_scheduled_at, now),
        Cell(": ".join(filter(None, (cron.reason, cron.message))), "dim"),
    )


def time_until(time: str | None, now: datetime) -> str:
    """Return how long until then: `in 5m`."""
    then = parse_time(time)
    return f"in {human_duration((then - now).total_seconds())}" if then else ""


def worker_table(
    workers: Iterable[WorkerInfo], now: datetime, *, everywhere: bool | None = False
) -> Table:
    """Return the table of workers."""
    ranked = sorted(workers, key=lambda one: (one.namespace, one.queue, one.pod))
    return _with_namespaces(
        WORKER_HEADINGS, ranked, [_worker_row(one, now) for one in ranked], everywhere
    )


def _worker_row(worker: WorkerInfo, now: datetime) -> Row:
    full = worker.slots and worker.running >= worker.slots
    return row(
        Cell(worker.pod, "bold"),
        worker.queue,
        Cell(str(worker.running), "yellow" if full else ""),
        str(worker.slots),
        worker.version or "",
        time_since(worker.seen_at, now),
        Cell(", ".join(worker.types), "dim"),
    )
