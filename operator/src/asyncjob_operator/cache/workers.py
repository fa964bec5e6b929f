"""The cache of workers: their pods, the newest process of each pod, and who serves each queue.

Times are read from this replica's monotonic clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.worker_lease import pod_of_lease, read_worker_lease
from asyncjob_operator.cache.jobs import QueueKey
from asyncjob_operator.cache.versions import VersionTracker
from asyncjob_operator.core.liveness import (
    NEVER_SEEN,
    UNKNOWN_HOLDER,
    HolderStatus,
    PodView,
    is_same_termination,
    read_pod,
    status_written,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.workers import (
    AffectedTypes,
    QueueWorkers,
    UnservedType,
    worker_record,
)

PodName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """The newest process of a pod, as the worker's Lease names it."""

    pod_uid: str
    worker: str
    """Identity of the process, the Lease's holderIdentity."""

    since: float
    """Since when it has been known while its pod was watched without a break; monotonic."""


NO_PROCESS: Final = WorkerProcess("", "", NEVER_SEEN)


class WorkerPodCache:
    """Worker pods and their Leases.

    Listeners are called with namespace and UID of each pod that has changed.
    """

    def __init__(self, now: Callable[[], Now]) -> None:
        self._pods_watched = False
        self._now = now
        self._listeners: list[Callable[[str, str], None]] = []
        self._pods: dict[PodName, PodView] = {}
        self._termination_shown_at: dict[PodName, float | None] = {}
        self._newest_process: dict[PodName, WorkerProcess] = {}
        self._pod_versions: VersionTracker[PodName] = VersionTracker()
        self._lease_versions: VersionTracker[PodName] = VersionTracker()

    def add_listener(self, on_change: Callable[[str, str], None]) -> None:
        """Call this with each pod that changes."""
        self._listeners.append(on_change)

    def mark_pods_watched(self) -> None:
        """Take from now on that a pod which is not known does not exist.

        That holds once pods are listed and watched; without the permission to, never.
        """
        self._pods_watched = True

    def holder_status(self, job: JobView) -> HolderStatus:
        """Return what is known of the pod that holds the job's lease."""
        lease = job.lease
        if lease is None:
            return UNKNOWN_HOLDER
        name = (job.namespace, lease.holder)
        pod = self._pods.get(name)
        process = self._newest_process.get(name, NO_PROCESS)
        own_process = process if process.pod_uid == lease.holder_uid else NO_PROCESS
        return HolderStatus(
            pods_known=self._pods_watched,
            pod=pod if pod and pod.uid == lease.holder_uid else None,
            newest_worker=own_process.worker,
            newest_worker_since=own_process.since,
            termination_shown_at=self._termination_shown_at.get(name),
        )

    def on_pods_relisted(self) -> None:
        """Handle that pods are listed again, at a start or after a break of their watch.

        What the list shows may have happened long ago, even before a process that is known already
        was announced. So its time of observation begins again.
        """
        now = self._now().monotonic
        self._newest_process = {
            name: replace(process, since=now) for name, process in self._newest_process.items()
        }

    def on_pod_read(self, obj: JsonObject) -> None:
        """Store a pod that was read apart from the watch.

        Its status may have been written several times since its container ended.
        """
        self._store_pod(obj, None)

    def on_pod_update(self, obj: JsonObject) -> None:
        """Store a pod as the watch shows it, unless a newer version is known."""
        self._store_pod(obj, self._written_at(obj))

    def _store_pod(self, obj: JsonObject, written_at: float | None) -> None:
        pod = read_pod(obj)
        name = (pod.namespace, pod.name)
        if not self._pod_versions.accept(name, text(child(obj, "metadata"), "resourceVersion")):
            return
        previous = self._pods.get(name)
        if pod == previous:
            return
        self._pods[name] = pod
        if pod.termination and not (
            previous
            and previous.termination
            and is_same_termination(previous.termination, pod.termination)
        ):
            self._termination_shown_at[name] = written_at
        if previous and previous.uid != pod.uid:
            self._on_change(pod.namespace, previous.uid)
        self._on_change(pod.namespace, pod.uid)

    def on_pod_delete(self, namespace: str, name: str, version: str = "") -> None:
        """Forget a pod that was deleted at this version, unless a newer one is known."""
        if self._pod_versions.is_newer_known((namespace, name), version):
            return
        self._pod_versions.record_deleted((namespace, name), version)
        self._termination_shown_at.pop((namespace, name), None)
        previous = self._pods.pop((namespace, name), None)
        if previous:
            self._on_change(namespace, previous.uid)

    def on_lease_update(self, obj: JsonObject) -> None:
        """Store which process a worker's Lease names; a renewal by the same one changes nothing."""
        lease = read_worker_lease(obj)
        name = (lease.namespace, lease.pod)
        if not self._lease_versions.accept(name, lease.resource_version):
            return
        previous = self._newest_process.get(name, NO_PROCESS)
        if (previous.pod_uid, previous.worker) != (lease.pod_uid, lease.worker):
            since = self._now().monotonic
            self._newest_process[name] = WorkerProcess(lease.pod_uid, lease.worker, since)
            self._on_change(lease.namespace, lease.pod_uid)

    def on_lease_delete(self, namespace: str, lease: str, version: str = "") -> None:
        """Forget a Lease that was deleted at this version, unless a newer one is known.

        That it was deleted does not prove that the process has ended.
        """
        name = (namespace, pod_of_lease(lease))
        if self._lease_versions.is_newer_known(name, version):
            return
        self._lease_versions.record_deleted(name, version)
        self._newest_process.pop(name, None)

    def _on_change(self, namespace: str, pod_uid: str) -> None:
        for listener in self._listeners:
            listener(namespace, pod_uid)

    def _written_at(self, pod: JsonObject) -> float | None:
        """Return when a pod's status was written, on this replica's monotonic clock.

        None where that is not known. It may be long ago: a watch can be late.
        """
        now, written = self._now(), status_written(pod)
        return None if written is None else now.monotonic - max(0.0, now.server_wall - written)

    def pods_in(self, namespace: str | None) -> list[PodName]:
        """Return the names of the known pods of one namespace, or of all."""
        return [name for name in self._pods if namespace in (None, name[0])]

    def leases_in(self, namespace: str | None) -> list[PodName]:
        """Return the pods of the known worker Leases of one namespace, or of all."""
        return [name for name in self._newest_process if namespace in (None, name[0])]


class WorkerRegistry:
    """The registered workers of each queue.

    Listeners are called with a queue and the types that have become served or unserved there,
    `on_slots_changed` with a queue whose workers have more or fewer slots than before.

    A queue without any Lease is forgotten, and with it since when a type has been unserved.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        on_slots_changed: Callable[[QueueKey], None],
    ) -> None:
        self._leases_watched = False
        self._clock = clock
        self._listeners: list[Callable[[QueueKey, AffectedTypes], None]] = []
        self._on_slots_changed = on_slots_changed
        self._queues: dict[QueueKey, QueueWorkers] = {}
        self._queue_of_pod: dict[tuple[str, str], str] = {}
        self._versions: VersionTracker[tuple[str, str]] = VersionTracker()

    def add_listener(self, on_types_changed: Callable[[QueueKey, AffectedTypes], None]) -> None:
        """Call this with each queue of which other types are served than before."""
        self._listeners.append(on_types_changed)

    def mark_leases_watched(self) -> None:
        """Take from now on that a worker without a known Lease does not exist.

        That holds once Leases are listed and watched; without the permission to, never.
        """
        self._leases_watched = True

    def unserved_type(self, job: JobView) -> UnservedType | None:
        """Return since when the job's type has been unserved in its queue, None if it is served."""
        return self.unserved(job.namespace, job.queue, job.type)

    def unserved(self, namespace: str, queue: str, job_type: str) -> UnservedType | None:
        """Return since when a type is unserved in a queue, None if it is served or unknown."""
        queue_workers = self._queues.get((namespace, queue))
        return queue_workers.unserved_type(job_type, self._clock()) if queue_workers else None

    def is_served(self, job: JobView) -> bool:
        """Return whether a worker of the queue may handle the job's type, or it has no workers."""
        queue_workers = self._queues.get((job.namespace, job.queue))
        return queue_workers is None or queue_workers.is_served(job.type)

    def slots(self, namespace: str, queue: str) -> int | None:
        """Return how many jobs the queue's workers run at the same time, None if unknown."""
        if not self._leases_watched:
            return None
        queue_workers = self._queues.get((namespace, queue))
        return queue_workers.slots if queue_workers else 0

    def capacity_by_queue(self) -> dict[QueueKey, tuple[int, int]] | None:
        """Return workers and slots of each queue that has any, None if they are not known."""
        if not self._leases_watched:
            return None
        return {
            queue: (queue_workers.workers, queue_workers.slots)
            for queue, queue_workers in self._queues.items()
        }

    def workers(self, namespace: str, queue: str) -> int:
        """Return how many workers accept jobs of the queue."""
        queue_workers = self._queues.get((namespace, queue))
        return queue_workers.workers if queue_workers else 0

    def on_lease_update(self, obj: JsonObject) -> None:
        """Store a worker's Lease, unless a newer version is known."""
        lease = read_worker_lease(obj)
        namespace, pod, queue = lease.namespace, lease.pod, lease.queue_label
        if not self._versions.accept((namespace, lease.name), lease.resource_version):
            return
        if self._queue_of_pod.get((namespace, pod), queue) != queue:
            self._remove(namespace, pod)
        self._queue_of_pod[namespace, pod] = queue
        queue_workers = self._queues.setdefault((namespace, queue), QueueWorkers())
        previous_slots = queue_workers.slots
        affected = queue_workers.update(pod, worker_record(lease), self._clock())
        if affected:
            self._on_types_changed((namespace, queue), affected)
        if queue_workers.slots != previous_slots:
            self._on_slots_changed((namespace, queue))

    def on_lease_delete(self, namespace: str, lease: str, version: str = "") -> None:
        """Forget a Lease that was deleted at this version, unless a newer one is known."""
        if self._versions.is_newer_known((namespace, lease), version):
            return
        self._versions.record_deleted((namespace, lease), version)
        self._remove(namespace, pod_of_lease(lease))

    def _on_types_changed(self, queue: QueueKey, affected: AffectedTypes) -> None:
        for listener in self._listeners:
            listener(queue, affected)

    def _remove(self, namespace: str, pod: str) -> None:
        queue = self._queue_of_pod.pop((namespace, pod), None)
        queue_workers = self._queues.get((namespace, queue)) if queue is not None else None
        if queue_workers is None or queue is None:
            return
        affected = queue_workers.remove(pod, self._clock())
        self._on_slots_changed((namespace, queue))
        if not queue_workers:
            del self._queues[namespace, queue]
        if affected:
            self._on_types_changed((namespace, queue), affected)
