"""What is kept of one namespace, and how it is kept up to date."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.kube.follow import follow
from asyncjob.names import COMPONENT_LABEL, JOBS, QUEUES, WORKER_COMPONENT, collection
from asyncjob.rest.surroundings import QueueInfo, WorkerInfo
from asyncjob.rest.surroundings_reading import queue_of
from asyncjob_gateway import kinds
from asyncjob_gateway.cache import queues
from asyncjob_gateway.cache.entry import version_of
from asyncjob_gateway.cache.feed import Feed
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.room import Room
from asyncjob_gateway.cache.shaped import Shaped
from asyncjob_gateway.cache.surroundings import Objects
from asyncjob_gateway.errors import RefusedError

WORKERS_ONLY = {"labelSelector": f"{COMPONENT_LABEL}={WORKER_COMPONENT}"}


class NamespaceView:
    """Jobs, queues and workers of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.feed = Feed()
        self.jobs = JobCache(self.feed)
        self.room = Room(self.jobs)
        self._queues = Objects()
        self._leases = Objects()

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        return self.jobs.synced and self._queues.synced and self._leases.synced

    def demand_synced(self) -> None:
        """Raise RefusedError while what there is is not known."""
        if not self.synced:
            raise RefusedError(kinds.NOT_SYNCED, retry_after=1.0)

    def queue_object(self, name: str) -> JsonObject | None:
        """Return a queue's AsyncQueue, if it has one."""
        return self._queues.by_name.get(name)

    def workers(self, now: datetime) -> list[WorkerInfo]:
        """Return the live workers."""
        return queues.workers(self._leases.by_name.values(), self._running(), now)

    def queues(self, now: datetime) -> list[QueueInfo]:
        """Return all queues."""
        objects = self._queues.by_name.values()
        return queues.queues(self.name, objects, self.jobs.counts, self.workers(now))

    def queue(self, name: str, now: datetime, read: QueueInfo | None = None) -> QueueInfo:
        """Return one queue; `read` is what its AsyncQueue says, if that has just been read."""
        obj = self.queue_object(name)
        known = read or (queue_of(obj) if obj else queues.bare(self.name, name))
        return queues.counted(known, self.jobs.counts, self.workers(now))

    async def keep(
        self, session: KubeSession, watched: Callable[[str], Callable[[], None]]
    ) -> None:
        """Keep up to date until cancelled; `watched` gives what counts the watches of a kind."""
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases"
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_jobs(session, watched("jobs")))
            for path, objects, params, kind in (
                (collection(self.name, QUEUES), self._queues, {}, "queues"),
                (leases, self._leases, WORKERS_ONLY, "workers"),
            ):
                group.create_task(follow(session, path, objects, params, on_watch=watched(kind)))

    async def _keep_jobs(self, session: KubeSession, on_watch: Callable[[], None]) -> None:
        path = collection(self.name, JOBS)
        await follow(
            session,
            path,
            self.jobs,
            on_watch=on_watch,
            on_list=lambda version: self.feed.listed(version_of(version)),
            shape=Shaped,
        )

    def _running(self) -> Counter[str]:
        summaries = (entry.summary for entry in self.jobs.newest())
        return Counter(summary.worker for summary in summaries if summary.worker)
