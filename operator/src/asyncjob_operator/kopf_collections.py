"""How AsyncQueues, AsyncCronJobs and AsyncArrays reach their caches: by kopf's events and lists.

kopf's handlers learn neither when its first list is complete nor what was deleted between two
lists. So all is listed at the start, every `--resync-interval`, and when kopf lists again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from asyncjob.backoff import with_jitter
from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.kube.informer import list_into
from asyncjob.names import ARRAYS, CRON_JOBS, QUEUES, collection_path
from asyncjob_operator.cache.adapters import InformerStore, QueueCacheAdapter
from asyncjob_operator.cache.queues import QueueCache
from asyncjob_operator.controllers.array_evaluator import ArrayEvaluator, ArrayStore
from asyncjob_operator.controllers.cron_job_evaluator import (
    CronJobEvaluator,
    CronJobStore,
    resync_cron_jobs,
)
from asyncjob_operator.loops import MAX_WATCH_PAUSE, ResyncTimer
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.quarantine import Quarantine

log = structlog.get_logger()

ResyncStore = Callable[[str | None, InformerStore], Awaitable[None]]
"""Brings the store of a namespace, or of all, up to date; raises what a request raises."""


class KopfCollection:
    """The objects of one resource that kopf watches, in one namespace or more."""

    def __init__(
        self,
        title: str,
        stores: dict[str | None, InformerStore],
        resync: ResyncStore,
        resync_interval: float,
    ) -> None:
        self._title = title
        self._stores = stores
        self._resync = resync
        self._timers = {namespace: ResyncTimer(resync_interval) for namespace in stores}
        self._started = False

    def start(self, tasks: TaskSupervisor) -> list[InformerStore]:
        """List, and take events from now on; return the stores, to wait until each is listed."""
        self._started = True
        for namespace in self._stores:
            tasks.start(
                f"resync of {self._title} in {namespace or 'all namespaces'}",
                partial(self._run_resync, namespace),
                max_pause=MAX_WATCH_PAUSE,
            )
        return list(self._stores.values())

    def on_event(self, kind: str | None, obj: JsonObject) -> None:
        """Take what kopf has seen; None: found in a list.

        Before the start nothing is taken: everything is listed then.
        """
        if self._started:
            namespace = None if None in self._stores else text(child(obj, "metadata"), "namespace")
            self._stores[namespace].apply(WatchEvent(kind or "ADDED", obj))

    def resync_now(self, namespace: str | None) -> None:
        """Resync soon: kopf may have missed a deletion."""
        self._timers[namespace].trigger()

    async def _run_resync(self, namespace: str | None, health: LoopHealth) -> None:
        """Resync now and then. Raises what a request raises while nothing is known yet."""
        store = self._stores[namespace]
        while True:
            try:
                await self._resync(namespace, store)
            except ApiError as error:
                if not store.synced.is_set():
                    raise
                health.attempted()
                log.warning(
                    "resync failed",
                    what=self._title,
                    namespace=namespace,
                    error=str(error),
                )
                with health.idle():
                    await asyncio.sleep(with_jitter(MAX_WATCH_PAUSE))
            else:
                health.tick()
                with health.idle():
                    await self._timers[namespace].wait()


def queue_collection(
    session: KubeSession,
    namespaces: tuple[str | None, ...],
    cache: QueueCache,
    quarantine: Quarantine,
    resync_interval: float,
) -> KopfCollection:
    """Return the AsyncQueues, as they go into their cache."""
    adapter = QueueCacheAdapter(cache)

    async def resync(namespace: str | None, store: InformerStore) -> None:
        await list_into(session, collection_path(namespace, QUEUES), store)

    stores = {namespace: InformerStore(adapter, namespace, quarantine) for namespace in namespaces}
    return KopfCollection("queues", stores, resync, resync_interval)


def array_collection(
    session: KubeSession,
    namespaces: tuple[str | None, ...],
    evaluator: ArrayEvaluator,
    quarantine: Quarantine,
    resync_interval: float,
) -> KopfCollection:
    """Return the AsyncArrays, as they go to their evaluator."""

    async def resync(namespace: str | None, store: InformerStore) -> None:
        await list_into(session, collection_path(namespace, ARRAYS), store)

    stores: dict[str | None, InformerStore] = {
        namespace: ArrayStore(evaluator, namespace, quarantine) for namespace in namespaces
    }
    return KopfCollection("arrays", stores, resync, resync_interval)


def cron_job_collection(
    session: KubeSession,
    namespaces: tuple[str | None, ...],
    evaluator: CronJobEvaluator,
    quarantine: Quarantine,
    resync_interval: float,
) -> KopfCollection:
    """Return the AsyncCronJobs, as they go to their evaluator.

    A resync after the first list reads metadata, and what differs live.
    """

    async def resync(namespace: str | None, store: InformerStore) -> None:
        if not store.synced.is_set():
            await list_into(session, collection_path(namespace, CRON_JOBS), store)
            return
        repaired = await resync_cron_jobs(session, namespace, evaluator, quarantine)
        if repaired:
            log.info("cron jobs resynced", namespace=namespace, repaired=repaired)

    stores: dict[str | None, InformerStore] = {
        namespace: CronJobStore(evaluator, namespace, quarantine) for namespace in namespaces
    }
    return KopfCollection("cron jobs", stores, resync, resync_interval)
