"""Live reads that verify what the cache says before anyone acts on it.

They concern worker pods and Leases, duplicates, and the jobs that a job depends on.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asyncjob.errors import ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.lifecycle.deduplication import is_live, unfinished_with_id
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import FINAL_PHASES
from asyncjob.lifecycle.waits import WaitedChild
from asyncjob.names import (
    ARRAY_KIND,
    JOB_KIND,
    JOBS,
    PARENT_LABEL,
    WORKER_LEASE_PREFIX,
    array_path,
    collection_path,
    job_path,
)
from asyncjob.worker_lease import read_worker_lease
from asyncjob_operator.cache.adapters import ObjectName
from asyncjob_operator.cache.child_arrays import related_array
from asyncjob_operator.core.decision import (
    AllOf,
    CancelCascades,
    ChildrenFinished,
    ChildrenOver,
    ContainerDown,
    DependencyCycle,
    DependencyHasFailed,
    DependencyMissing,
    DependencyPrecondition,
    DuplicateStillLive,
    NoLiveDuplicate,
    PodGone,
    Precondition,
    SinglePrecondition,
    TypeUnserved,
    WorkerReplaced,
)
from asyncjob_operator.core.dependencies import RelatedJob, related_job
from asyncjob_operator.core.liveness import read_pod
from asyncjob_operator.core.workers import WorkerRecord, worker_record
from asyncjob_operator.kube.paths import WORKER_SELECTOR, leases_path, pods_path

MAX_VERIFIED = 10_000
"""Verified preconditions that are remembered; beyond that all are forgotten."""

WORKER_LIST_SECONDS = 5.0
"""Seconds for which one list of a namespace's workers verifies all its unserved types.

The decisions that it verifies are taken from a registry that is kept up to date meanwhile.
"""


@dataclass(frozen=True, slots=True)
class CacheUpdates:
    """Where live reads are stored, so that they correct the cache."""

    on_pod: Callable[[JsonObject], None]
    on_pod_deleted: Callable[[str, str], None]
    on_lease: Callable[[JsonObject], None]
    on_lease_deleted: Callable[[str, str], None]
    on_job: Callable[[JsonObject], None]
    on_job_deleted: Callable[[str], None]
    on_array: Callable[[JsonObject], None]
    on_array_deleted: Callable[[ObjectName], None]
    is_current: Callable[[str], bool]
    """Whether everything written before a job's known version is known as well."""


@dataclass(frozen=True, slots=True)
class WorkerList:
    """The workers of a namespace, from one list."""

    listed_at: float
    """When the list began, in monotonic seconds."""

    by_queue: defaultdict[str, list[WorkerRecord]]


class PreconditionChecker:
    """Verifies preconditions by live reads.

    A pod UID that is gone never comes back, nor does a replaced process, so each is verified once
    and not for each job.
    """

    def __init__(
        self, session: KubeSession, cache_updates: CacheUpdates, clock: Callable[[], float]
    ) -> None:
        self._session = session
        self._cache_updates = cache_updates
        self._clock = clock
        self._related_jobs = RelatedJobChecker(session, cache_updates)
        self._worker_lists: dict[str, WorkerList] = {}
        self._worker_list_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._verified: set[PodGone | WorkerReplaced] = set()

    async def verify(self, precondition: Precondition | None) -> bool:
        """Return whether the precondition holds; the cache is corrected where it does not."""
        match precondition:
            case None:
                return True
            case AllOf(preconditions):
                return all([await self._holds(one) for one in preconditions])
            case _:
                return await self._holds(precondition)

    async def _holds(self, precondition: SinglePrecondition) -> bool:
        match precondition:
            case PodGone() | WorkerReplaced():
                return precondition in self._verified or await self._verify_once(precondition)
            case ContainerDown():
                return await self._is_container_down(precondition)
            case DuplicateStillLive(namespace, name, uid):
                return await self._is_duplicate_live(namespace, name, uid)
            case NoLiveDuplicate():
                return not await self._has_live_duplicate(precondition)
            case TypeUnserved():
                return await self._is_type_unserved(precondition)
            case (
                DependencyHasFailed()
                | DependencyMissing()
                | DependencyCycle()
                | CancelCascades()
                | ChildrenFinished()
                | ChildrenOver()
            ):
                return await self._related_jobs.verify(precondition)

    async def _verify_once(self, precondition: PodGone | WorkerReplaced) -> bool:
        check = (
            self._is_pod_gone(precondition)
            if isinstance(precondition, PodGone)
            else self._is_worker_replaced(precondition)
        )
        if not await check:
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
        newest = read_worker_lease(lease).worker
        return newest not in {"", precondition.worker}

    async def _is_container_down(self, precondition: ContainerDown) -> bool:
        obj = await self._read(f"{pods_path(precondition.namespace)}/{precondition.pod}")
        if obj is None:
            self._cache_updates.on_pod_deleted(precondition.namespace, precondition.pod)
            return False
        self._cache_updates.on_pod(obj)
        pod = read_pod(obj)
        ended = pod.termination
        return (
            pod.uid == precondition.pod_uid
            and ended is not None
            and not ended.restarted
            and (ended.finished_at, ended.exit_code)
            == (precondition.finished_at, precondition.exit_code)
        )

    async def _is_duplicate_live(self, namespace: str, name: str, uid: str) -> bool:
        obj = await self._read(job_path(namespace, name))
        duplicate = read_job(obj) if obj is not None else None
        if obj is None or duplicate is None or duplicate.uid != uid:
            self._cache_updates.on_job_deleted(uid)
            return False
        self._cache_updates.on_job(obj)
        return is_live(duplicate)

    async def _has_live_duplicate(self, precondition: NoLiveDuplicate) -> bool:
        """Ask the API server, because the cache may not know the duplicate, or as finished.

        The list is consistent, and of metadata: a duplicate may be as large as can be. What it
        shows is read, so that the cache knows it from now on.
        """
        namespace, uid = precondition.namespace, precondition.uid
        selector = {"fieldSelector": unfinished_with_id(precondition.deduplication_id)}
        found = False
        async for obj in self._session.list(
            collection_path(namespace, JOBS), selector, accept=METADATA_LIST_TYPE
        ):
            meta = child(obj, "metadata")
            other, name = text(meta, "uid"), text(meta, "name")
            if other != uid and not found:
                found = await self._is_duplicate_live(namespace, name, other)
        return found

    async def _is_type_unserved(self, precondition: TypeUnserved) -> bool:
        """Ask the workers' Leases; where they correct the cache, the job goes on waiting."""
        workers = (await self._workers_in(precondition.namespace)).by_queue[precondition.queue]
        known = any(worker.may_handle(precondition.type) for worker in workers)
        return not known and any(worker.accepts_jobs for worker in workers)

    async def _workers_in(self, namespace: str) -> WorkerList:
        async with self._worker_list_locks[namespace]:
            worker_list = self._worker_lists.get(namespace)
            if worker_list is None or self._clock() >= worker_list.listed_at + WORKER_LIST_SECONDS:
                worker_list = self._worker_lists[namespace] = await self._list_workers(namespace)
            return worker_list

    async def _list_workers(self, namespace: str) -> WorkerList:
        worker_list = WorkerList(self._clock(), defaultdict(list))
        async for obj in self._session.list(leases_path(namespace), WORKER_SELECTOR):
            lease = read_worker_lease(obj)
            worker_list.by_queue[lease.queue_label].append(worker_record(lease))
            self._cache_updates.on_lease(obj)
        return worker_list

    async def _read(self, path: str) -> JsonObject | None:
        try:
            return await self._session.get(path)
        except ObjectNotFoundError:
            return None


class RelatedJobChecker:
    """Verifies what concerns other jobs, and arrays that are waited for.

    `cache_updates` get the answers, so that the cache is right.
    """

    def __init__(self, session: KubeSession, cache_updates: CacheUpdates) -> None:
        self._session = session
        self._on_job = cache_updates.on_job
        self._on_job_deleted = cache_updates.on_job_deleted
        self._on_array = cache_updates.on_array
        self._on_array_deleted = cache_updates.on_array_deleted
        self._is_current = cache_updates.is_current

    async def verify(self, precondition: DependencyPrecondition) -> bool:
        """Return whether the precondition holds."""
        match precondition:
            case DependencyHasFailed(job):
                found = await self._reread(job)
                return found is not None and found.failed
            case CancelCascades(job):
                found = await self._reread(job)
                return found is not None and found.cascades_cancel
            case DependencyCycle(cycle):
                members = [await self._reread(job) for job in cycle]
                return all(job and job.phase not in FINAL_PHASES for job in members)
            case DependencyMissing(namespace, name, kind):
                return await self._read(namespace, name, kind) is None
            case ChildrenFinished():
                return await self._children_finished(precondition)
            case ChildrenOver(namespace, children):
                return await self._are_over(namespace, children)

    async def _are_over(self, namespace: str, children: Iterable[WaitedChild]) -> bool:
        """Return whether all are over; the first that is not is known from then on."""
        for one in children:
            if not await self._is_over(namespace, one):
                return False
        return True

    async def _is_over(self, namespace: str, child: WaitedChild) -> bool:
        if child.kind == ARRAY_KIND:
            return await self._is_array_over(namespace, child)
        found = await self._read_job(namespace, child.name)
        return found is None or found.uid != child.uid or found.finished

    async def _is_array_over(self, namespace: str, array: WaitedChild) -> bool:
        found = await self._read_array(namespace, array.name)
        return found is None or found.uid != array.uid or found.finished

    async def _reread(self, known: RelatedJob) -> RelatedJob | None:
        """Return it as it is now, None if it is gone, even if another has its name."""
        found = await self._read(known.namespace, known.name, known.kind)
        if found is not None and found.uid == known.uid:
            return found
        if known.kind == JOB_KIND:
            self._on_job_deleted(known.uid)
        elif found is None:
            self._on_array_deleted((known.namespace, known.name))
        return None

    async def _read(self, namespace: str, name: str, kind: str) -> RelatedJob | None:
        if kind == ARRAY_KIND:
            return await self._read_array(namespace, name)
        job = await self._read_job(namespace, name)
        return related_job(job) if job else None

    async def _read_array(self, namespace: str, name: str) -> RelatedJob | None:
        try:
            obj = await self._session.get(array_path(namespace, name))
        except ObjectNotFoundError:
            return None
        self._on_array(obj)
        return related_array(obj)

    async def _read_job(self, namespace: str, name: str) -> JobView | None:
        try:
            obj = await self._session.get(job_path(namespace, name))
        except ObjectNotFoundError:
            return None
        self._on_job(obj)
        return read_job(obj)

    async def _children_finished(self, precondition: ChildrenFinished) -> bool:
        """Return whether all children have finished: by the cache if possible, else by a list.

        The cache suffices if the watch has passed the versions in which the parents are known, as
        it reports jobs in the order of their writes. For a list the API server goes through the
        whole namespace.
        """
        if all(map(self._is_current, precondition.parents)):
            return True
        params = {"labelSelector": f"{PARENT_LABEL} in ({','.join(precondition.parents)})"}
        done = True
        async for obj in self._session.list(collection_path(precondition.namespace, JOBS), params):
            self._on_job(obj)
            job = related_job(read_job(obj))
            failed = job.failed and read_job(obj).parent_uid in precondition.must_succeed
            done = done and job.finished and not failed
        return done
