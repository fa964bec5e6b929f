"""The cache of workers: their pods, the newest process of each pod, and what queues are served.

Pods and worker Leases come and go; both are judged by this replica's monotonic clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.names import POD_UID_ANNOTATION, WORKER_LEASE_PREFIX
from asyncjob_operator.cache.versions import VersionTracker
from asyncjob_operator.core.liveness import (
    NEVER_SEEN,
    UNKNOWN_HOLDER,
    HolderStatus,
    PodView,
    is_same_termination,
    read_pod,
)
from asyncjob_operator.core.workers import (
    AffectedTypes,
    QueueWorkers,
    UnservedType,
    queue_of_lease,
    read_worker_record,
)

PodName = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """The newest process of a pod; `since`: known, with the pod in sight, monotonic seconds."""

    pod_uid: str
    worker: str
    since: float


NO_PROCESS: Final = WorkerProcess("", "", NEVER_SEEN)


class WorkerPodCache:
    """Pods and announcements; `on_change` is called with a pod that something is new of.

    It is told the pod's namespace and UID.

    `pods_known` is False until pods have been listed, and stays so without permission to.
    """

    def __init__(self, clock: Callable[[], float], on_change: Callable[[str, str], None]) -> None:
        self.pods_known = False
        self._clock = clock
        self._on_change = on_change
        self._pods: dict[PodName, PodView] = {}
        self._termination_seen_at: dict[PodName, float] = {}
        self._newest_process: dict[PodName, WorkerProcess] = {}
        self._pod_versions: VersionTracker[PodName] = VersionTracker()
        self._lease_versions: VersionTracker[PodName] = VersionTracker()

    def holder_status(self, job: JobView) -> HolderStatus:
        """Return what is known of the pod that holds the job's lease."""
        lease = job.lease
        if lease is None:
            return UNKNOWN_HOLDER
        name = (job.namespace, lease.holder)
        pod = self._pods.get(name)
        newest = self._newest_process.get(name, NO_PROCESS)
        own = newest if newest.pod_uid == lease.holder_uid else NO_PROCESS
        return HolderStatus(
            pods_known=self.pods_known,
            pod=pod if pod and pod.uid == lease.holder_uid else None,
            newest_worker=own.worker,
            newest_worker_since=own.since,
            termination_seen_at=self._termination_seen_at.get(name, 0.0),
        )

    def on_pods_relisted(self) -> None:
        """Take that pods are listed anew, as at a start or after a break of their watch.

        What is seen then may have happened long ago: before an announcement that is known already.
        """
        now = self._clock()
        self._newest_process = {
            name: replace(one, since=now) for name, one in self._newest_process.items()
        }

    def on_pod_update(self, obj: JsonObject) -> None:
        """Take a pod as it was then."""
        pod = read_pod(obj)
        name = (pod.namespace, pod.name)
        if not self._pod_versions.accept(name, text(child(obj, "metadata"), "resourceVersion")):
            return
        before = self._pods.get(name)
        if pod == before:
            return
        self._pods[name] = pod
        if pod.termination and not (
            before
            and before.termination
            and is_same_termination(before.termination, pod.termination)
        ):
            self._termination_seen_at[name] = self._clock()
        if before and before.uid != pod.uid:
            self._on_change(pod.namespace, before.uid)
        self._on_change(pod.namespace, pod.uid)

    def on_pod_delete(self, namespace: str, name: str) -> None:
        """Take that there is no such pod any more."""
        self._pod_versions.record_deleted((namespace, name))
        self._termination_seen_at.pop((namespace, name), None)
        before = self._pods.pop((namespace, name), None)
        if before:
            self._on_change(namespace, before.uid)

    def on_lease_update(self, obj: JsonObject) -> None:
        """Take an announcement; renewals of the same process are no news."""
        meta = child(obj, "metadata")
        name = (text(meta, "namespace"), pod_of_lease(text(meta, "name")))
        if not self._lease_versions.accept(name, text(meta, "resourceVersion")):
            return
        pod_uid = text(child(meta, "annotations"), POD_UID_ANNOTATION)
        worker = text(child(obj, "spec"), "holderIdentity")
        before = self._newest_process.get(name, NO_PROCESS)
        if (before.pod_uid, before.worker) != (pod_uid, worker):
            self._newest_process[name] = WorkerProcess(pod_uid, worker, self._clock())
            self._on_change(name[0], pod_uid)

    def on_lease_delete(self, namespace: str, lease: str) -> None:
        """Take that an announcement is gone; that proves nothing."""
        self._lease_versions.record_deleted((namespace, pod_of_lease(lease)))
        self._newest_process.pop((namespace, pod_of_lease(lease)), None)

    def pods_in(self, namespace: str | None) -> list[PodName]:
        """Return the names of the known pods of one namespace, or of all."""
        return [name for name in self._pods if namespace in (None, name[0])]

    def leases_in(self, namespace: str | None) -> list[PodName]:
        """Return the pods' names of the known announcements of one namespace, or of all."""
        return [name for name in self._newest_process if namespace in (None, name[0])]


def pod_of_lease(lease: str) -> str:
    """Return the name of the pod that a worker's Lease is about."""
    return lease.removeprefix(WORKER_LEASE_PREFIX)


QueueKey = tuple[str, str]
"""Namespace and name."""


class WorkerRegistry:
    """The registered workers of each queue.

    `on_types_changed` is called with a queue and the types that are known there, or no longer.
    `on_slots_changed` is called with one whose workers run more or fewer jobs at
    once than before. `leases_watched` is False where Leases may not be watched: nothing is known of
    workers then.

    A queue without any Lease is forgotten, and with it since when a type has been missing.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        on_types_changed: Callable[[QueueKey, AffectedTypes], None],
        on_slots_changed: Callable[[QueueKey], None],
    ) -> None:
        self.leases_watched = False
        self._clock = clock
        self._on_types_changed = on_types_changed
        self._on_slots_changed = on_slots_changed
        self._queues: dict[QueueKey, QueueWorkers] = {}
        self._queue_of_pod: dict[tuple[str, str], str] = {}
        self._versions: VersionTracker[tuple[str, str]] = VersionTracker()

    def unserved_type(self, job: JobView) -> UnservedType | None:
        """Return since when the job's type is missing in its queue, or None if it is not."""
        call = self._queues.get((job.namespace, job.queue))
        return call.unserved_type(job.type, self._clock()) if call else None

    def is_served(self, job: JobView) -> bool:
        """Return whether a worker of the queue may know the job's type, or none is there."""
        call = self._queues.get((job.namespace, job.queue))
        return call is None or call.is_served(job.type)

    def slots(self, namespace: str, queue: str) -> int | None:
        """Return how many jobs the queue's workers run at once, None if that is not known."""
        if not self.leases_watched:
            return None
        call = self._queues.get((namespace, queue))
        return call.slots if call else 0

    def capacity_by_queue(self) -> dict[QueueKey, tuple[int, int]] | None:
        """Return workers and slots of each queue that has any, None if that is not known."""
        if not self.leases_watched:
            return None
        return {queue: (call.workers, call.slots) for queue, call in self._queues.items()}

    def workers(self, namespace: str, queue: str) -> int:
        """Return how many workers take jobs of the queue."""
        call = self._queues.get((namespace, queue))
        return call.workers if call else 0

    def on_lease_update(self, obj: JsonObject) -> None:
        """Take a worker's Lease as it is now."""
        meta, queue = child(obj, "metadata"), queue_of_lease(obj)
        namespace, lease = text(meta, "namespace"), text(meta, "name")
        if not self._versions.accept((namespace, lease), text(meta, "resourceVersion")):
            return
        pod = lease.removeprefix(WORKER_LEASE_PREFIX)
        if self._queue_of_pod.get((namespace, pod), queue) != queue:
            self._remove(namespace, pod)
        self._queue_of_pod[namespace, pod] = queue
        call = self._queues.setdefault((namespace, queue), QueueWorkers())
        before = call.slots
        concerned = call.update(pod, read_worker_record(obj), self._clock())
        if concerned:
            self._on_types_changed((namespace, queue), concerned)
        if call.slots != before:
            self._on_slots_changed((namespace, queue))

    def on_lease_delete(self, namespace: str, lease: str) -> None:
        """Take that there is no such Lease any more."""
        self._versions.record_deleted((namespace, lease))
        self._remove(namespace, lease.removeprefix(WORKER_LEASE_PREFIX))

    def _remove(self, namespace: str, pod: str) -> None:
        queue = self._queue_of_pod.pop((namespace, pod), None)
        call = self._queues.get((namespace, queue)) if queue is not None else None
        if call is None or queue is None:
            return
        concerned = call.remove(pod, self._clock())
        self._on_slots_changed((namespace, queue))
        if not call:
            del self._queues[namespace, queue]
        if concerned:
            self._on_types_changed((namespace, queue), concerned)
