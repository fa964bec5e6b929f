"""The loops driven by time: requeue timer, resync, policy checks, queue status, retention."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError
from asyncjob.json_types import child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import MAX_OUTAGE_BACKOFF, TimeSlice
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.kube.transport import KubeRequest
from asyncjob.names import JOBS, collection_path
from asyncjob_operator.controllers.events import UnservedQueueEvents
from asyncjob_operator.controllers.job_informer import JobResync, ResyncResult
from asyncjob_operator.controllers.queue_status import QUEUE_STATUS_INTERVAL, QueueStatusWriter
from asyncjob_operator.controllers.retention import RetentionController
from asyncjob_operator.controllers.stale_workers import StaleWorkerCollector
from asyncjob_operator.controllers.workqueue import DelayingQueue, Leadership
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.preflight import find_missing_policies
from asyncjob_operator.telemetry.logs import RecoverySummary
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()

MAX_SLEEP: Final = 5.0
"""Most seconds between two turns of a requeue timer, by which its health sees that it lives."""

MAX_WATCH_PAUSE: Final = MAX_OUTAGE_BACKOFF
"""Most seconds between two tries to watch, each of which begins with a resync."""

SAMPLE_INTERVAL: Final = 60.0
"""Seconds between two samples of versions, as between two passes of retention by default."""

UNSERVED_QUEUE_INTERVAL: Final = 30.0
"""Seconds between two checks; a queue counts as unserved after `UNSERVED_SECONDS` only."""

REQUEUE_BATCH: Final = 200
"""Objects that are taken from a delaying queue at a time, before the event loop runs others."""

NamespaceCallback = Callable[[str | None], None]
"""Takes a namespace, or None for all, of which everything is known as it is now."""


class ResyncTimer:
    """Says when to resync with the cluster: every `interval` seconds, and when triggered."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._triggered = asyncio.Event()

    def trigger(self) -> None:
        """End the wait, or the next one if none is under way."""
        self._triggered.set()

    async def wait(self) -> None:
        """Wait for the next resync."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._interval):
                await self._triggered.wait()
        self._triggered.clear()


class RequeueMetrics(Protocol):
    """Takes the measurements of a requeue timer."""

    def observe_requeue_lag(self, seconds: float) -> None:
        """Record how late the earliest deadline is, when the timer turns."""

    def observe_requeue_cycle(self, seconds: float) -> None:
        """Record how long a turn has taken."""


class UnmeasuredRequeues:
    """Records nothing: the operator's metrics of requeues are about jobs."""

    def observe_requeue_lag(self, seconds: float) -> None:
        """Record nothing."""

    def observe_requeue_cycle(self, seconds: float) -> None:
        """Record nothing."""


async def run_requeue_timer(
    delaying_queue: DelayingQueue,
    evaluate: Callable[[str], None],
    metrics: RequeueMetrics,
    health: LoopHealth,
) -> None:
    """Evaluate each job, cron job or queue again when its requeue time has come."""
    while True:
        health.tick()
        await delaying_queue.wait(monotonic(), MAX_SLEEP)
        started_at = monotonic()
        late_by = delaying_queue.late_by(started_at)
        if late_by is not None:
            metrics.observe_requeue_lag(late_by)
        evaluated = await _evaluate_due(delaying_queue, evaluate, started_at)
        metrics.observe_requeue_cycle(monotonic() - started_at)
        message = "due items evaluated" if evaluated else "nothing due"
        log.debug(message, loop=health.name, count=evaluated)


async def _evaluate_due(
    delaying_queue: DelayingQueue, evaluate: Callable[[str], None], now: float
) -> int:
    evaluated, time_slice = 0, TimeSlice()
    while due := delaying_queue.pop_due(now, REQUEUE_BATCH):
        for uid in due:
            evaluate(uid)
            await time_slice.yield_if_due()
        evaluated += len(due)
        await asyncio.sleep(0)
    return evaluated


async def run_resync(
    resync: JobResync,
    namespaces: tuple[str | None, ...],
    *,
    metrics: OperatorMetrics,
    timer: ResyncTimer,
    on_resync: Callable[[int], None],
    on_namespace: NamespaceCallback,
    health: LoopHealth,
) -> None:
    """Compare the cache with the cluster, whenever the timer says so.

    `on_resync` is called with how many jobs had to be repaired each time, `on_namespace` with each
    namespace that could be resynced.
    """
    while True:
        with health.idle():
            await timer.wait()
        repaired = 0
        for namespace in namespaces:
            try:
                repaired += (await resync_namespace(resync, namespace, metrics)).total
            except ApiError as error:
                health.attempted()
                log.warning("resync failed", namespace=namespace, error=str(error))
            else:
                health.tick()
                on_namespace(namespace)
        on_resync(repaired)


async def resync_namespace(
    resync: JobResync, namespace: str | None, metrics: OperatorMetrics
) -> ResyncResult:
    """Compare one namespace, or all, and count what was repaired; raises what a request raises."""
    repairs = await resync.run(namespace)
    for kind, count in repairs.by_kind.items():
        metrics.resync_repairs.labels(kind).inc(count)
    level = log.info if repairs.total else log.debug
    level("resynced", namespace=namespace, repaired=repairs.total)
    return repairs


async def run_policy_checks(
    session: KubeSession, known_problems: list[str], interval: float, health: LoopHealth
) -> None:
    """Check every `interval` seconds that the admission policies are there.

    What is missing is logged when it differs from the last check; `known_problems` is what the
    check at the start has found.
    """
    while True:
        with health.idle():
            await asyncio.sleep(interval)
        try:
            lines = await find_missing_policies(session)
        except ApiError as error:
            log.warning("policies not checked", error=str(error))
            continue
        if lines != known_problems:
            _log_policies(lines)
        known_problems = lines


def _log_policies(lines: list[str]) -> None:
    for line in lines:
        log.warning(line)
    if not lines:
        log.info("all policies are in force again")


async def run_recovery_summary(summary: RecoverySummary, health: LoopHealth) -> None:
    """Log what was recovered, once a second at most."""
    while True:
        with health.idle():
            await asyncio.sleep(1.0)
        summary.report()


async def _while_leading(
    leadership: Leadership, interval: float, health: LoopHealth
) -> AsyncGenerator[None]:
    """Yield every `interval` seconds while this replica leads."""
    while True:
        with health.idle():
            await leadership.wait_until_elected()
        yield
        health.tick()
        with health.idle():
            await asyncio.sleep(interval)


async def run_queue_status(
    writer: QueueStatusWriter, leadership: Leadership, health: LoopHealth
) -> None:
    """Write the status of queues, every few seconds, while leading."""
    async for _ in _while_leading(leadership, QUEUE_STATUS_INTERVAL, health):
        await writer.write(health.tick)


async def run_unserved_queue_events(
    unserved_queue_events: UnservedQueueEvents, leadership: Leadership, health: LoopHealth
) -> None:
    """Record Events about queues without workers, checking every few seconds, while leading."""
    async for _ in _while_leading(leadership, UNSERVED_QUEUE_INTERVAL, health):
        await unserved_queue_events.check()


async def run_stale_worker_collection(
    collector: StaleWorkerCollector, leadership: Leadership, interval: float, health: LoopHealth
) -> None:
    """Remove the Leases of silent workers, checking every `interval` seconds, while leading."""
    async for _ in _while_leading(leadership, interval, health):
        try:
            await collector.collect()
        except ApiError as error:
            log.warning("worker leases not listed", error=str(error))


async def run_version_samples(
    session: KubeSession,
    namespace: str | None,
    leadership: Leadership,
    sample: Callable[[str], None],
    health: LoopHealth,
) -> None:
    """Ask which version is the newest, once a minute, while leading: a list of any job tells."""
    request = KubeRequest(
        "GET", collection_path(namespace, JOBS), {"limit": "1"}, accept=METADATA_LIST_TYPE
    )
    async for _ in _while_leading(leadership, SAMPLE_INTERVAL, health):
        try:
            page = await session.send(request)
        except ApiError as error:
            log.warning("newest version not read", error=str(error))
        else:
            sample(text(child(page, "metadata"), "resourceVersion"))


async def run_retention(
    retention: RetentionController, leadership: Leadership, interval: float, health: LoopHealth
) -> None:
    """Remove finished jobs, every `interval` seconds, while leading."""
    async for _ in _while_leading(leadership, interval, health):
        removed = await retention.run_once(health.tick)
        if removed:
            log.info("finished jobs removed", count=removed)
