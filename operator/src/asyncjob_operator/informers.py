"""Keeps the caches of worker pods and worker Leases up to date, by informers of the SDK's."""

from collections.abc import Callable

from asyncjob.kube import KubeSession
from asyncjob.kube.informer import WatchObserver, run_informer
from asyncjob_operator.cache.adapters import (
    CacheAdapter,
    InformerStore,
    PodCacheAdapter,
    WorkerLeaseCacheAdapter,
)
from asyncjob_operator.cache.workers import WorkerPodCache, WorkerRegistry
from asyncjob_operator.kube.paths import WORKER_SELECTOR, leases_path, pods_path
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.supervision import TaskSupervisor
from asyncjob_operator.telemetry.loop_health import LoopHealth
from asyncjob_operator.telemetry.quarantine import Quarantine


class Informers:
    """Starts the loops that follow worker pods and worker Leases; `names` names them."""

    def __init__(
        self,
        session: KubeSession,
        namespaces: tuple[str | None, ...],
        quarantine: Quarantine,
        *,
        worker_pods: WorkerPodCache,
        worker_registry: WorkerRegistry,
    ) -> None:
        self.names: list[str] = []
        self._session = session
        self._quarantine = quarantine
        self._namespaces = namespaces
        self._worker_pods = worker_pods
        self._worker_registry = worker_registry

    def start(
        self, tasks: TaskSupervisor, findings: Findings, *, recovery: bool
    ) -> list[InformerStore]:
        """Follow what may be seen and return what has to be listed before anything is judged."""
        scopes: list[InformerStore] = []
        if recovery and findings.allows("list", "pods") and findings.allows("watch", "pods"):
            self._worker_pods.mark_pods_watched()
            adapter: CacheAdapter = PodCacheAdapter(self._worker_pods)
            scopes += self._start_informers(tasks, "pods", pods_path, adapter)
        if findings.allows("list", "leases") and findings.allows("watch", "leases"):
            self._worker_registry.mark_leases_watched()
            adapter = WorkerLeaseCacheAdapter(self._worker_pods, self._worker_registry)
            scopes += self._start_informers(tasks, "leases", leases_path, adapter)
        return scopes

    def _start_informers(
        self,
        tasks: TaskSupervisor,
        title: str,
        path: Callable[[str | None], str],
        adapter: CacheAdapter,
    ) -> list[InformerStore]:
        return [
            self._start_informer(
                tasks,
                watch_name(title, namespace),
                path(namespace),
                InformerStore(adapter, namespace, self._quarantine),
            )
            for namespace in self._namespaces
        ]

    def _start_informer(
        self, tasks: TaskSupervisor, name: str, path: str, store: InformerStore
    ) -> InformerStore:
        async def run(health: LoopHealth) -> None:
            observer = _HealthObserver(health)
            await run_informer(self._session, path, store, WORKER_SELECTOR, observer=observer)

        self.names.append(name)
        tasks.start(name, run)
        return store


class _HealthObserver(WatchObserver):
    """Reports to the health of a loop how its watch goes."""

    def __init__(self, health: LoopHealth) -> None:
        self._health = health

    def progressed(self) -> None:
        self._health.tick()

    def failed(self) -> None:
        self._health.attempted()


def watch_name(title: str, namespace: str | None) -> str:
    """Return what the health of a watch is known by."""
    return f"watch of {title} in {namespace or 'all namespaces'}"
