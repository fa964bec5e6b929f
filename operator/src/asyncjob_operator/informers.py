"""Keeps the caches of worker pods and worker Leases up to date, by informers of the SDK's."""

from collections.abc import Callable

from asyncjob.kube import KubeSession
from asyncjob.kube.informer import run_informer
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
        tasks: TaskSupervisor,
        quarantine: Quarantine,
        *,
        worker_pods: WorkerPodCache,
        worker_registry: WorkerRegistry,
    ) -> None:
        self.names: list[str] = []
        self._session = session
        self._quarantine = quarantine
        self._namespaces = namespaces
        self._tasks = tasks
        self._worker_pods = worker_pods
        self._worker_registry = worker_registry

    def start(self, findings: Findings, *, recovery: bool) -> list[InformerStore]:
        """Follow what may be seen and return what has to be listed before anything is judged."""
        scopes: list[InformerStore] = []
        if recovery and findings.allows("list", "pods") and findings.allows("watch", "pods"):
            self._worker_pods.mark_pods_watched()
            adapter: CacheAdapter = PodCacheAdapter(self._worker_pods)
            scopes += self._start_informers("pods", pods_path, adapter)
        if findings.allows("list", "leases") and findings.allows("watch", "leases"):
            self._worker_registry.mark_leases_watched()
            adapter = WorkerLeaseCacheAdapter(self._worker_pods, self._worker_registry)
            scopes += self._start_informers("leases", leases_path, adapter)
        return scopes

    def _start_informers(
        self,
        title: str,
        path: Callable[[str | None], str],
        adapter: CacheAdapter,
    ) -> list[InformerStore]:
        return [
            self._start_informer(
                watch_name(title, namespace),
                path(namespace),
                InformerStore(adapter, namespace, self._quarantine),
            )
            for namespace in self._namespaces
        ]

    def _start_informer(self, name: str, path: str, store: InformerStore) -> InformerStore:
        async def run(health: LoopHealth) -> None:
            def on_health(*, went_well: bool) -> None:
                (health.tick if went_well else health.attempted)()

            await run_informer(self._session, path, store, WORKER_SELECTOR, on_health=on_health)

        self.names.append(name)
        self._tasks.start(name, run)
        return store


def watch_name(title: str, namespace: str | None) -> str:
    """Return what the health of a watch is known by."""
    return f"watch of {title} in {namespace or 'all namespaces'}"
