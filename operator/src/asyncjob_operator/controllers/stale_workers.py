"""Deletes the Leases of workers that have gone silent, only in the version that was judged.

It lists Leases instead of watching them: a list proves that the API server answers, so that workers
could have renewed them. After an outage all silence is counted from zero.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import structlog

from asyncjob.errors import ApiError, ConflictError, ObjectNotFoundError
from asyncjob.kube import KubeSession
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.core.workers import (
    UnchangedSince,
    WorkerLeaseVersion,
    lease_version,
    stale_leases,
    track_unchanged,
)
from asyncjob_operator.kube.paths import WORKER_SELECTOR, leases_path
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import Activity, ObjectKind, Quarantine, object_ref

log = structlog.get_logger()


class StaleWorkerCollector:
    """Goes through all workers' Leases; `busy_pods` returns the pods that hold jobs."""

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
        quarantine: Quarantine,
    ) -> None:
        self._session = session
        self._namespaces = namespaces
        self._timeout = timeout
        self._busy_pods = busy_pods
        self._clock = clock
        self._leads = leads
        self._metrics = metrics
        self._quarantine = quarantine
        self._unchanged_since: UnchangedSince = {}

    async def collect(self) -> int:
        """Delete stale Leases and return how many. Raises ApiError if a list fails."""
        previous, self._unchanged_since = self._unchanged_since, {}
        listed = await self._list()
        now = self._clock()
        unchanged = self._unchanged_since = track_unchanged(previous, listed, now)
        silent = stale_leases(unchanged, self._busy_pods(), self._timeout, now)
        return sum([await self._delete_lease(lease) for lease in silent if self._leads()])

    async def _list(self) -> list[WorkerLeaseVersion]:
        listed: list[WorkerLeaseVersion] = []
        for namespace in self._namespaces:
            async for obj in self._session.list(leases_path(namespace), WORKER_SELECTOR):
                with self._quarantine.guard(object_ref(ObjectKind.LEASE, obj), Activity.RETAIN):
                    listed.append(lease_version(read_worker_lease(obj)))
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
