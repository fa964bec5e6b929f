"""How AsyncQueues reach the cache: a list first, then kopf's watch, and a comparison now and then.

kopf shows no bookmarks, and may lose a deletion when its watch begins anew. So a list shows that
all is well, before each watch and every `--resync-interval`.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from asyncjob.errors import ApiError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession, WatchEvent
from asyncjob.kube.informer import list_into
from asyncjob.names import QUEUES, collection_path
from asyncjob_operator.cache.adapters import InformerStore, QueueCacheAdapter
from asyncjob_operator.cache.queues import QueueCache
from asyncjob_operator.informers import informer_name
from asyncjob_operator.kube.kopf_watch import watch_queues
from asyncjob_operator.loops import MAX_WATCH_PAUSE
from asyncjob_operator.settings import Settings
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.containment import Containment
from asyncjob_operator.telemetry.loop_health import HealthMonitor, LoopHealth
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()

KOPF_LOOP: Final = "kopf"


class Queues:
    """The watch of AsyncQueues.

    `names` are what its health is known by once it is started, one per namespace.
    """

    def __init__(
        self,
        settings: Settings,
        session: KubeSession,
        *,
        cache: QueueCache,
        containment: Containment,
        metrics: OperatorMetrics,
        health: HealthMonitor,
    ) -> None:
        self.names: list[str] = []
        self._settings, self._session, self._metrics = settings, session, metrics
        self._health = health
        adapter = QueueCacheAdapter(cache)
        self._stores = {
            namespace: InformerStore(adapter, namespace, containment)
            for namespace in settings.watched_namespaces
        }
        self._listing = asyncio.Lock()

    def start(
        self, tasks: TaskSupervisor, restore_signals: Callable[[], None]
    ) -> list[InformerStore]:
        """Start the loops, and return what has to be listed before anything is judged.

        kopf takes over the process's signals, which `restore_signals` undoes.
        """
        self.names = [informer_name("queues", namespace) for namespace in self._stores]
        restarted = self._metrics.watch_restarts.inc
        tasks.start(
            KOPF_LOOP, lambda pulse: self._watch(restore_signals, pulse), restarted, MAX_WATCH_PAUSE
        )
        tasks.start("queue comparison", self._run_resync)
        return list(self._stores.values())

    async def _watch(self, restore_signals: Callable[[], None], health: LoopHealth) -> None:
        """Watch; list first, as no watch tells of what was deleted before it began."""
        await self._resync(health)
        access, namespaces = self._session.access, self._settings.namespaces
        with health.idle():
            await watch_queues(access, namespaces, self._on_event, restore_signals)

    def _on_event(self, kind: str | None, obj: JsonObject) -> None:
        namespace = text(child(obj, "metadata"), "namespace")
        store = self._stores.get(namespace) or self._stores[None]
        store.apply(WatchEvent(kind or "ADDED", obj))

    async def _run_resync(self, health: LoopHealth) -> None:
        while True:
            with health.idle():
                await asyncio.sleep(self._settings.resync_interval)
            await self._resync(health)

    async def _resync(self, health: LoopHealth) -> None:
        """List all; one namespace that does not answer keeps none of the others back.

        Raises what a request raises while there is one of which nothing is known yet.
        """
        failed: ApiError | None = None
        async with self._listing:
            for namespace, store in self._stores.items():
                pulse = self._health.loop(informer_name("queues", namespace))
                try:
                    await list_into(self._session, collection_path(namespace, QUEUES), store)
                except ApiError as error:
                    log.warning("queues not listed", namespace=namespace, error=str(error))
                    pulse.attempted()
                    if not store.synced.is_set():
                        failed = error
                else:
                    pulse.tick()
                health.tick()
        if failed is not None:
            raise failed
