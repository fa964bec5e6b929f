"""Which types the workers of each queue list, as their Leases come and go."""

from collections.abc import Callable

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.view import JobView
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_operator.core.roll_call import (
    AffectedTypes,
    QueueWorkers,
    UnservedType,
    queue_of_lease,
    read_worker_record,
)
from asyncjob_operator.observe.versions import VersionTracker

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
