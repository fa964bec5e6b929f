"""Removes the Leases of workers that have gone silent, each exactly as it was when it was judged.

It lists instead of watching: a list proves that the API server answers, and so that workers could
have renewed. After an outage all counting begins anew.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

import structlog

from asyncjob.errors import ApiError, ConflictError, NotFoundError
from asyncjob.kube import KubeSession
from asyncjob_operator.core.attendance import (
    Attendance,
    WorkerLease,
    attend,
    read_worker_lease,
    silent_workers,
)
from asyncjob_operator.kube.paths import WORKERS_ONLY, leases
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()


class Farewell:
    """One look at all workers' Leases at a time; `busy` are the pods that hold jobs."""

    def __init__(
        self,
        session: KubeSession,
        scopes: Sequence[str | None],
        *,
        timeout: float,
        busy: Callable[[], AbstractSet[tuple[str, str]]],
        clock: Callable[[], float],
        leads: Callable[[], bool],
        metrics: Metrics,
        containment: Containment,
    ) -> None:
        self._session = session
        self._scopes = scopes
        self._timeout = timeout
        self._busy = busy
        self._clock = clock
        self._leads = leads
        self._metrics = metrics
        self._containment = containment
        self._attendance: Attendance = {}

    async def look(self) -> int:
        """Remove what is to go and return how many went; raises what a list raises."""
        before, self._attendance = self._attendance, {}
        listed = await self._list()
        now = self._clock()
        attendance = self._attendance = attend(before, listed, now)
        silent = silent_workers(attendance, self._busy(), self._timeout, now)
        return sum([await self._remove(lease) for lease in silent if self._leads()])

    async def _list(self) -> list[WorkerLease]:
        listed: list[WorkerLease] = []
        for scope in self._scopes:
            async for obj in self._session.list(leases(scope), WORKERS_ONLY):
                with self._containment.guard(subject(Kind.LEASE, obj), Doing.RETAIN):
                    listed.append(read_worker_lease(obj))
        return listed

    async def _remove(self, lease: WorkerLease) -> bool:
        preconditions = {"uid": lease.uid, "resourceVersion": lease.version}
        path = f"{leases(lease.namespace)}/{lease.name}"
        try:
            await self._session.delete(path, {"preconditions": preconditions})
        except (ConflictError, NotFoundError):
            return False
        except ApiError as error:
            log.warning("lease of a silent worker not removed", lease=path, error=str(error))
            return False
        self._metrics.workers_removed.inc()
        log.debug("silent worker removed", namespace=lease.namespace, lease=lease.name)
        return True
