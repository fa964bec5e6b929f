"""Live reads that verify what the cache says before anyone acts on it.

They concern worker pods and Leases, duplicates, and the jobs that a job depends on.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from asyncjob.errors import ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import TERMINAL_PHASES
from asyncjob.names import JOBS, PARENT_LABEL, WORKER_LEASE_PREFIX, collection_path, job_path
from asyncjob_operator.core.decision import (
    CancelCascades,
    ChildrenFinished,
    DependencyCycle,
    DependencyFailed,
    DependencyMissing,
    DependencyPrecondition,
    DuplicateStillLive,
    PodGone,
    Precondition,
    TypeUnserved,
    WorkerReplaced,
)
from asyncjob_operator.core.dependencies import RelatedJob, related_job
from asyncjob_operator.core.workers import WorkerRecord, queue_of_lease, read_worker_record
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.kube.paths import WORKER_SELECTOR, leases_path, pods_path


class RelatedJobChecker:
    """Asks the API server about jobs.

    `on_job` and `on_job_deleted` take what it answers, so that the cache is right.
    `is_current` says of a known job that all written before it is known as well.
    """

    def __init__(
        self,
        session: KubeSession,
        on_job: Callable[[JsonObject], None],
        on_job_deleted: Callable[[str], None],
        is_current: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._on_job = on_job
        self._on_job_deleted = on_job_deleted
        self._is_current = is_current

    async def verify(self, precondition: DependencyPrecondition) -> bool:
        """Return whether the proof holds."""
        match precondition:
            case DependencyFailed(job):
                there = await self._reread(job)
                return there is not None and there.failed
            case CancelCascades(job):
                there = await self._reread(job)
                return there is not None and there.cascades_cancel
            case DependencyCycle(cycle):
                found = [await self._reread(one) for one in cycle]
                return all(one and one.phase not in TERMINAL_PHASES for one in found)
            case DependencyMissing():
                return await self._read_job(precondition.namespace, precondition.name) is None
            case ChildrenFinished():
                return await self._children_finished(precondition)

    async def _reread(self, job: RelatedJob) -> RelatedJob | None:
        """Return the very job as it is now, or None if there is none or another of its name."""
        there = await self._read_job(job.namespace, job.name)
        if there is None or there.uid != job.uid:
            self._on_job_deleted(job.uid)
            return None
        return related_job(there)

    async def _read_job(self, namespace: str, name: str) -> JobView | None:
        try:
            obj = await self._session.get(job_path(namespace, name))
        except ObjectNotFoundError:
            return None
        self._on_job(obj)
        return read_job(obj)

    async def _children_finished(self, precondition: ChildrenFinished) -> bool:
        """Ask for the children, unless all that were created before the parents' ends are known.

        The watch tells of jobs in the order they were written. Without that, a list has to show
        it, for which the API server looks through the whole namespace.
        """
        if all(map(self._is_current, precondition.parents)):
            return True
        params = {"labelSelector": f"{PARENT_LABEL} in ({','.join(precondition.parents)})"}
        done = True
        async for obj in self._session.list(collection_path(precondition.namespace, JOBS), params):
            self._on_job(obj)
            child = related_job(read_job(obj))
            spoilt = child.failed and read_job(obj).parent_uid in precondition.must_succeed
            done = done and child.finished and not spoilt
        return done


MAX_VERIFIED = 10_000
WORKER_LIST_SECONDS = 5.0
"""So long a list of a namespace's workers serves all its dead letters; the roll call that each of
them is judged by is kept up to date meanwhile."""


@dataclass(frozen=True, slots=True)
class CacheUpdates:
    """Who takes what a live read showed when a cache was wrong."""

    on_pod: Callable[[JsonObject], None]
    on_lease: Callable[[JsonObject], None]
    on_lease_deleted: Callable[[str, str], None]
    on_job: Callable[[JsonObject], None]
    on_job_deleted: Callable[[str], None]
    is_current: Callable[[str], bool] = lambda _uid: False
    """Whether all that was written before a job's known version is known, too."""


@dataclass(frozen=True, slots=True)
class WorkerList:
    """The workers of a namespace by queue, as a list showed them that began then, monotonic."""

    listed_at: float
    by_queue: defaultdict[str, list[WorkerRecord]]


class PreconditionChecker:
    """Asks the API server.

    That a pod's UID is gone, or a process replaced, is true for ever, so that is asked once and
    not for each job.
    """

    def __init__(
        self,
        session: KubeSession,
        cache_updates: CacheUpdates,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._session = session
        self._cache_updates = cache_updates
        self._clock = clock
        self._related_jobs = RelatedJobChecker(
            session, cache_updates.on_job, cache_updates.on_job_deleted, cache_updates.is_current
        )
        self._worker_lists: dict[str, WorkerList] = {}
        self._worker_list_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._verified: set[PodGone | WorkerReplaced] = set()

    async def verify(self, precondition: Precondition | None) -> bool:
        """Return whether the proof holds; where it does not, correct the cache."""
        match precondition:
            case None:
                return True
            case PodGone() | WorkerReplaced():
                return precondition in self._verified or await self._verify_once(precondition)
            case DuplicateStillLive():
                return await self._is_duplicate_live(precondition)
            case TypeUnserved():
                return await self._is_type_unserved(precondition)
            case (
                DependencyFailed()
                | DependencyMissing()
                | DependencyCycle()
                | CancelCascades()
                | ChildrenFinished()
            ):
                return await self._related_jobs.verify(precondition)

    async def _verify_once(self, precondition: PodGone | WorkerReplaced) -> bool:
        look = (
            self._is_pod_gone(precondition)
            if isinstance(precondition, PodGone)
            else self._is_worker_replaced(precondition)
        )
        if not await look:
            return False
        if len(self._verified) >= MAX_VERIFIED:
            self._verified.clear()
        self._verified.add(precondition)
        return True

    async def _is_pod_gone(self, precondition: PodGone) -> bool:
        pod = await self._read(f"{pods_path(precondition.namespace)}/{precondition.name}")
        if pod is not None and text(child(pod, "metadata"), "uid") == precondition.uid:
            self._cache_updates.on_pod(pod)
            return False
        return True

    async def _is_worker_replaced(self, precondition: WorkerReplaced) -> bool:
        name = WORKER_LEASE_PREFIX + precondition.pod
        lease = await self._read(f"{leases_path(precondition.namespace)}/{name}")
        if lease is None:
            self._cache_updates.on_lease_deleted(precondition.namespace, name)
            return False
        self._cache_updates.on_lease(lease)
        newest = text(child(lease, "spec"), "holderIdentity")
        return newest not in {"", precondition.worker}

    async def _is_duplicate_live(self, precondition: DuplicateStillLive) -> bool:
        obj = await self._read(job_path(precondition.namespace, precondition.name))
        rival = read_job(obj) if obj is not None else None
        if obj is None or rival is None or rival.uid != precondition.uid:
            self._cache_updates.on_job_deleted(precondition.uid)
            return False
        self._cache_updates.on_job(obj)
        return not rival.finished and not rival.deleting

    async def _is_type_unserved(self, precondition: TypeUnserved) -> bool:
        """Look at the Leases there are; what they correct in the cache keeps the job waiting."""
        entries = (await self._workers_in(precondition.namespace)).by_queue[precondition.queue]
        known = any(entry.may_handle(precondition.type) for entry in entries)
        return not known and any(entry.accepts_jobs for entry in entries)

    async def _workers_in(self, namespace: str) -> WorkerList:
        async with self._worker_list_locks[namespace]:
            crew = self._worker_lists.get(namespace)
            if crew is None or self._clock() >= crew.listed_at + WORKER_LIST_SECONDS:
                crew = self._worker_lists[namespace] = await self._list_workers(namespace)
            return crew

    async def _list_workers(self, namespace: str) -> WorkerList:
        crew = WorkerList(self._clock(), defaultdict(list))
        async for lease in self._session.list(leases_path(namespace), WORKER_SELECTOR):
            crew.by_queue[queue_of_lease(lease)].append(read_worker_record(lease))
            self._cache_updates.on_lease(lease)
        return crew

    async def _read(self, path: str) -> JsonObject | None:
        try:
            return await self._session.get(path)
        except ObjectNotFoundError:
            return None
