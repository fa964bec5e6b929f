"""Deletes the Leases of workers that have gone silent, each only in the version judged.

It lists instead of watching: a list proves that the API server answers, and so that workers could
have renewed. After an outage all counting starts again.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import structlog

from asyncjob.errors import ApiError, ConflictError, ObjectNotFoundError
from asyncjob.kube import KubeSession
from asyncjob_operator.core.workers import (
    UnchangedSince,
    WorkerLeaseVersion,
    read_worker_lease,
    stale_leases,
    track_unchanged,
)
from asyncjob_operator.kube.paths import WORKER_SELECTOR, leases_path
from asyncjob_operator.telemetry.containment import Activity, Containment, ObjectKind, object_ref
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()


class StaleWorkerCollector:
    """One look at all workers' Leases at a time; `busy_pods` are the pods that hold jobs."""

    def __init__(
        self,
        session: KubeSession,
        namespaces: Sequence[str | None],
        *,
        timeout: float,
        busy_pods: Callable[[], AbstractSet[tuple[str, str]]],
        clock: Callable[[], float],
        leads: Callable[[], bool],
        metrics: OperatorMetrics,
        containment: Containment,
    ) -> None:
        self._session = session
        self._namespaces = namespaces
        self._timeout = timeout
        self._busy_pods = busy_pods
        self._clock = clock
        self._leads = leads
        self._metrics = metrics
        self._containment = containment
        self._unchanged_since: UnchangedSince = {}

    async def collect(self) -> int:
        """Remove what is to go and return how many went; raises what a list raises."""
        before, self._unchanged_since = self._unchanged_since, {}
        listed = await self._list()
        now = self._clock()
        attendance = self._unchanged_since = track_unchanged(before, listed, now)
        silent = stale_leases(attendance, self._busy_pods(), self._timeout, now)
        return sum([await self._delete_lease(lease) for lease in silent if self._leads()])

    async def _list(self) -> list[WorkerLeaseVersion]:
        listed: list[WorkerLeaseVersion] = []
        for scope in self._namespaces:
            async for obj in self._session.list(leases_path(scope), WORKER_SELECTOR):
                with self._containment.guard(object_ref(ObjectKind.LEASE, obj), Activity.RETAIN):
                    listed.append(read_worker_lease(obj))
        return listed

    async def _delete_lease(self, lease: WorkerLeaseVersion) -> bool:
        preconditions = {"uid": lease.uid, "resourceVersion": lease.version}
        path = f"{leases_path(lease.namespace)}/{lease.name}"
        try:
            await self._session.delete(path, {"preconditions": preconditions})
        except (ConflictError, ObjectNotFoundError):
            return False
        except ApiError as error:
            log.warning("lease of a silent worker not removed", lease=path, error=str(error))
            return False
        self._metrics.workers_removed.inc()
        log.debug("silent worker removed", namespace=lease.namespace, lease=lease.name)
        return True
