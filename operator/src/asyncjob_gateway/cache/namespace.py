"""What is kept of one namespace, and how it is kept up to date."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.follow import run_informer
from asyncjob.names import COMPONENT_LABEL, JOBS, QUEUES, WORKER_COMPONENT, collection_path
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo
from asyncjob.rest.surroundings_reading import queue_of
from asyncjob_gateway import kinds
from asyncjob_gateway.cache import queues
from asyncjob_gateway.cache.entry import parse_version
from asyncjob_gateway.cache.feed import ChangeBuffer
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.room import QueueCapacity
from asyncjob_gateway.cache.shaped import TrimmedJob
from asyncjob_gateway.cache.surroundings import ObjectCache
from asyncjob_gateway.errors import RefusedError

WORKER_LEASES = {"labelSelector": f"{COMPONENT_LABEL}={WORKER_COMPONENT}"}


class NamespaceCache:
    """Jobs, queues and workers of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changes = ChangeBuffer()
        self.jobs = JobCache(self.changes)
        self.capacity = QueueCapacity(self.jobs)
        self._queues = ObjectCache()
        self._worker_leases = ObjectCache()

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return self.jobs.synced and self._queues.synced and self._worker_leases.synced

    def require_synced(self) -> None:
        """Raise RefusedError while what there is is not known."""
        if not self.synced:
            raise RefusedError(kinds.NOT_SYNCED, retry_after=1.0)

    def queue_object(self, name: str) -> JsonObject | None:
        """Return a queue's AsyncQueue, if it has one."""
        return self._queues.by_name.get(name)

    def workers(self, now: datetime) -> list[WorkerInfo]:
        """Return the live workers."""
        return queues.live_workers(
            self._worker_leases.by_name.values(), self._running_by_pod(), now
        )

    def queues(self, now: datetime) -> list[QueueInfo]:
        """Return all queues."""
        objects = self._queues.by_name.values()
        return queues.build_queues(self.name, objects, self.jobs.counts, self.workers(now))

    def queue(self, name: str, now: datetime, read: QueueInfo | None = None) -> QueueInfo:
        """Return one queue; `read` is what its AsyncQueue says, if that has just been read."""
        obj = self.queue_object(name)
        known = read or (queue_of(obj) if obj else queues.unconfigured_queue(self.name, name))
        return queues.with_counts(known, self.jobs.counts, self.workers(now))

    async def run(
        self, session: KubeSession, watch_counter: Callable[[str], Callable[[], None]]
    ) -> None:
        """Keep up to date until cancelled; `watched` gives what counts the watches of a kind."""
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run_jobs(session, watch_counter("jobs")))
            for path, objects, params, kind in (
                (collection_path(self.name, QUEUES), self._queues, {}, "queues"),
                (leases, self._worker_leases, WORKER_LEASES, "workers"),
            ):
                group.create_task(
                    run_informer(session, path, objects, params, on_watch=watch_counter(kind))
                )

    async def _run_jobs(self, session: KubeSession, on_watch: Callable[[], None]) -> None:
        path = collection_path(self.name, JOBS)
        await run_informer(
            session,
            path,
            self.jobs,
            on_watch=on_watch,
            on_list=lambda version: self.changes.on_listed(parse_version(version)),
            transform=TrimmedJob,
        )

    def _running_by_pod(self) -> Counter[str]:
        summaries = (entry.summary for entry in self.jobs.newest_first())
        return Counter(summary.worker for summary in summaries if summary.worker)
