"""The statistics of each queue: written into the AsyncQueue's status, and exported as gauges."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError, ObjectNotFoundError
from asyncjob.json_types import Json
from asyncjob.kube import KubeSession
from asyncjob.names import queue_status_path
from asyncjob_operator.cache.jobs import JobStore
from asyncjob_operator.cache.queue_stats import QueueStatsCollector
from asyncjob_operator.cache.workers import WorkerRegistry
from asyncjob_operator.controllers.workqueue import MAX_REFUSED_BACKOFF, ItemBackoff
from asyncjob_operator.telemetry.job_metrics import JobStats, NamespacedName
from asyncjob_operator.telemetry.quarantine import Activity, ObjectKind, ObjectRef, Quarantine

log = structlog.get_logger()

QUEUE_STATUS_INTERVAL: Final = 5.0
"""Seconds between two rounds of writes, and the first pause after a failed one."""

QueueStatusChanges = list[tuple[tuple[str, str], dict[str, Json]]]
"""Namespace and name of each queue whose status is out of date, and the fields to write."""


class QueueStatusWriter:
    """Writes the status of each queue that `changes` returns.

    A queue whose status cannot be written is left alone for longer each time, and the error is
    logged once: what the API server refuses now it will refuse in five seconds as well.
    """

    def __init__(
        self,
        session: KubeSession,
        changes: Callable[[], Awaitable[QueueStatusChanges]],
        leads: Callable[[], bool],
        quarantine: Quarantine,
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._changes = changes
        self._leads = leads
        self._quarantine = quarantine
        self._clock = clock
        self._backoff = ItemBackoff(QUEUE_STATUS_INTERVAL, MAX_REFUSED_BACKOFF)
        self._retry_at: dict[str, float] = {}

    async def write(self, on_progress: Callable[[], None]) -> int:
        """Write what has changed and return how many queues; `on_progress` is called for each."""
        now = self._clock()
        self._retry_at = {key: at for key, at in self._retry_at.items() if at > now}
        written = 0
        for queue, fields in await self._changes():
            on_progress()
            if self._leads() and "/".join(queue) not in self._retry_at:
                with self._quarantine.guard(ObjectRef(ObjectKind.QUEUE, *queue), Activity.WRITE):
                    written += await self._write_queue(queue, fields)
        return written

    async def _write_queue(self, queue: tuple[str, str], fields: dict[str, Json]) -> bool:
        key = "/".join(queue)
        try:
            await self._session.merge_patch(queue_status_path(*queue), {"status": fields})
        except ObjectNotFoundError:
            return False
        except ApiError as error:
            pause = self._backoff.record_failure(key)
            self._retry_at[key] = self._clock() + pause
            level = log.warning if self._backoff.is_new_error(key, str(error)) else log.debug
            level("numbers of a queue not written", queue=key, error=str(error), retry_in=pause)
            return False
        self._backoff.reset(key)
        return True


class JobStatsCollector:
    """Collects what the gauges of jobs show; nothing before the first `refresh`."""

    def __init__(
        self,
        store: JobStore,
        queue_stats: QueueStatsCollector,
        worker_registry: WorkerRegistry,
        finished_limit: int | None,
    ) -> None:
        self._store = store
        self._queue_stats = queue_stats
        self._worker_registry = worker_registry
        self._finished_limit = finished_limit
        self._oldest_wait: dict[NamespacedName, float] | None = None

    async def refresh(self) -> None:
        """Go through all waiting jobs; others run in between."""
        self._oldest_wait = await self._queue_stats.oldest_waits()

    def stats(self) -> JobStats | None:
        """Return what to show now, None before the first `refresh`."""
        if self._oldest_wait is None:
            return None
        return JobStats(
            self._store.counts,
            self._oldest_wait,
            self._worker_registry.capacity_by_queue(),
            self._finished_limit,
            self._queue_stats.parked,
            self._queue_stats.oldest_parks,
        )
