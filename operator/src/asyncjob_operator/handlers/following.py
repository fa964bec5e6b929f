"""Which collections beside the jobs are kept in sight, and where."""

from collections.abc import Callable

from asyncjob.kube import KubeSession
from asyncjob.kube.follow import follow
from asyncjob.names import QUEUES, collection
from asyncjob_operator.core.vitals import Pulse
from asyncjob_operator.handlers.tasks import Tasks
from asyncjob_operator.kube.paths import WORKERS_ONLY, leases, pods
from asyncjob_operator.kube.preflight import Findings
from asyncjob_operator.observe.followers import (
    Keeper,
    LeaseKeeper,
    PodKeeper,
    QueueKeeper,
    Scope,
)
from asyncjob_operator.observe.observer import Observer
from asyncjob_operator.telemetry.containment import Containment


class Following:
    """Starts the loops that follow queues, worker pods and worker Leases; `watches` names them."""

    def __init__(
        self,
        session: KubeSession,
        namespaces: tuple[str | None, ...],
        tasks: Tasks,
        containment: Containment,
    ) -> None:
        self.watches: list[str] = []
        self._session = session
        self._containment = containment
        self._namespaces = namespaces
        self._tasks = tasks

    def start(self, observer: Observer, findings: Findings, *, recovery: bool) -> list[Scope]:
        """Follow what may be seen and return what has to be listed before anything is judged."""
        scopes = self._follow("queues", _queues, QueueKeeper(observer.queues), {})
        if recovery and findings.may("list", "pods") and findings.may("watch", "pods"):
            observer.workers.pods_known = True
            workers = observer.workers
            scopes += self._follow(
                "pods", pods, PodKeeper(workers), WORKERS_ONLY, workers.pods_unseen
            )
        if findings.may("list", "leases") and findings.may("watch", "leases"):
            observer.roll_calls.followed = True
            keeper = LeaseKeeper(observer.workers, observer.roll_calls)
            scopes += self._follow("leases", leases, keeper, WORKERS_ONLY)
        return scopes

    def _follow(
        self,
        name: str,
        path: Callable[[str | None], str],
        keeper: Keeper,
        params: dict[str, str],
        on_list: Callable[[], None] = lambda: None,
    ) -> list[Scope]:
        return [
            self._follow_one(
                f"watch of {name} in {namespace or 'all namespaces'}",
                path(namespace),
                scope,
                params,
            )
            for namespace in self._namespaces
            for scope in (Scope(keeper, namespace, self._containment, on_list),)
        ]

    def _follow_one(self, name: str, path: str, scope: Scope, params: dict[str, str]) -> Scope:
        async def run(pulse: Pulse) -> None:
            def sign(*, went_well: bool) -> None:
                (pulse.beat if went_well else pulse.turned)()

            await follow(self._session, path, scope, params, on_sign=sign)

        self.watches.append(name)
        self._tasks.start(name, run)
        return scope


def _queues(namespace: str | None) -> str:
    return collection(namespace, QUEUES)
