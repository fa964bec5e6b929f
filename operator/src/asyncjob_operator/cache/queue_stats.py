"""Computes from the cached jobs the statistics that the status of each AsyncQueue shows."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.waits import kinds_of
from asyncjob_operator.cache.jobs import JobStore, QueueKey
from asyncjob_operator.cache.queues import QueueCache
from asyncjob_operator.cache.workers import WorkerRegistry
from asyncjob_operator.core.now import Now, to_epoch
from asyncjob_operator.core.options import QueueView
from asyncjob_operator.core.queue_stats import QueueStats, Throughput, stats_fields
from asyncjob_operator.core.snapshot import is_claimable
from asyncjob_operator.telemetry.quarantine import Activity, ObjectKind, ObjectRef, Quarantine

_WHOLE_SECONDS_LENGTH: Final = len("2026-01-01T00:00:00")

JOBS_PER_TURN: Final = 2000
"""Jobs that are gone through before the event loop runs others."""


class QueueStatsCollector:
    """Computes statistics of all queues from the cached jobs."""

    def __init__(
        self,
        store: JobStore,
        queues: QueueCache,
        worker_registry: WorkerRegistry,
        now: Callable[[], Now],
        quarantine: Quarantine,
    ) -> None:
        self._store = store
        self._queues = queues
        self._worker_registry = worker_registry
        self._now = now
        self._quarantine = quarantine
        self._throughput: defaultdict[QueueKey, Throughput] = defaultdict(Throughput)
        self.parked: Mapping[tuple[str, str, str], int] = {}
        """Parked jobs by namespace, queue and kind of what they wait for, when last looked at. A
        job that waits for several kinds counts for each."""

        self.oldest_parks: Mapping[tuple[str, str, str], float] = {}
        """For how many seconds the oldest of them has been parked."""

    def record_finished(self, queue: QueueKey) -> None:
        """Count a job of the queue that has finished."""
        if queue in self._queues:
            self._throughput[queue].record_finished(self._now().monotonic)

    async def changed_statuses(self) -> list[tuple[QueueKey, dict[str, Json]]]:
        """Return each queue whose status is out of date, with the fields to write."""
        if not self._queues.names_in(None):
            return []
        oldest_waits = await self.oldest_waits()
        counts = self._counts()
        now = self._now()
        found = []
        for queue in self._queues.names_in(None):
            with self._quarantine.guard(ObjectRef(ObjectKind.QUEUE, *queue), Activity.REPORT):
                stats = QueueStats(
                    counts=counts[queue],
                    oldest_queued_seconds=int(oldest_waits.get(queue, 0.0)),
                    workers=self._worker_registry.workers(*queue),
                    slots=self._worker_registry.slots(*queue) or 0,
                    finished_per_minute=self._throughput[queue].per_minute(now.monotonic),
                    paused=self._queues.view(*queue).paused,
                )
                fields = stats_fields(stats, self._queues.status(queue), now.timestamp)
                if fields is not None:
                    found.append((queue, fields))
        return found

    def _counts(self) -> defaultdict[QueueKey, dict[Phase, int]]:
        counts: defaultdict[QueueKey, dict[Phase, int]] = defaultdict(dict)
        for (namespace, queue, phase), count in self._store.counts.items():
            counts[namespace, queue][phase] = count
        return counts

    async def oldest_waits(self) -> dict[QueueKey, float]:
        """Return for how many seconds the oldest job of each queue has waited to be started.

        A queue without queued jobs is included, with 0, if it has an AsyncQueue.
        """
        oldest = await self._oldest_queued_since()
        wall = self._now().wall
        waiting: dict[QueueKey, float] = {}
        for queue, since in oldest.items():
            with self._quarantine.guard(ObjectRef(ObjectKind.QUEUE, *queue), Activity.MEASURE):
                waiting[queue] = max(0.0, wall - to_epoch(since, default=wall))
        return dict.fromkeys(self._queues.names_in(None), 0.0) | waiting

    async def _oldest_queued_since(self) -> dict[QueueKey, str]:
        """Return since when the oldest job of each queue has waited, accurate to the second.

        The stored timestamps are compared as text, cut to whole seconds.
        """
        oldest: dict[QueueKey, str] = {}
        parked: Counter[tuple[str, str, str]] = Counter()
        parked_since: dict[tuple[str, str, str], str] = {}
        for number, uid in enumerate(self._store.uids()):
            if number % JOBS_PER_TURN == 0:
                await asyncio.sleep(0)
            job = self._store.get(uid)
            if job is not None and job.waiting:
                since = job.last_transition_time or job.creation_timestamp
                for kind in kinds_of(job.waiting):
                    park = (job.namespace, job.queue, kind)
                    parked[park] += 1
                    parked_since[park] = _earlier(parked_since.get(park), since)
            if job is None or job.phase is not Phase.QUEUED:
                continue
            queue = (job.namespace, job.queue)
            if _waits(job, self._queues.view(*queue)):
                since = job.last_transition_time or job.creation_timestamp
                oldest[queue] = _earlier(oldest.get(queue), since)
        self.parked = parked
        self.oldest_parks = self._ages(parked_since)
        return oldest

    def _ages(
        self, parked_since: Mapping[tuple[str, str, str], str]
    ) -> Mapping[tuple[str, str, str], float]:
        wall = self._now().wall
        ages: dict[tuple[str, str, str], float] = {}
        for (namespace, queue, kind), since in parked_since.items():
            ref = ObjectRef(ObjectKind.QUEUE, namespace, queue)
            with self._quarantine.guard(ref, Activity.MEASURE):
                ages[namespace, queue, kind] = max(0.0, wall - to_epoch(since, default=wall))
        return ages


def _earlier(first: str | None, second: str) -> str:
    """Return the earlier of two timestamps, the first if both are of the same second."""
    if first is None or second[:_WHOLE_SECONDS_LENGTH] < first[:_WHOLE_SECONDS_LENGTH]:
        return second
    return first


def _waits(job: JobView, queue: QueueView) -> bool:
    """Return whether a queued job would start if a reservation and a worker were free."""
    return is_claimable(job, queue) or (queue.has_limits and not queue.paused)
