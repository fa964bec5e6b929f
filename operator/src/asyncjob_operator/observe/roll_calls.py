"""Which types the workers of each queue list, as their Leases come and go."""

from collections.abc import Callable

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.view import JobView
from asyncjob.names import WORKER_LEASE_PREFIX
from asyncjob_operator.core.roll_call import Concerned, Missing, RollCall, queue_of, read_entry
from asyncjob_operator.observe.versions import Versions

Queue = tuple[str, str]
"""Namespace and name."""


class RollCalls:
    """One roll call per queue; `changed` is called with a queue where types are known or no longer.

    It is told which. `resized` is called with one whose workers run more or fewer jobs at once than
    before.
    `followed` is False where Leases may not be watched: nothing is known of workers then.

    A queue without any Lease is forgotten, and with it since when a type has been missing.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        changed: Callable[[Queue, Concerned], None],
        resized: Callable[[Queue], None],
    ) -> None:
        self.followed = False
        self._clock = clock
        self._changed = changed
        self._resized = resized
        self._calls: dict[Queue, RollCall] = {}
        self._queue_of_pod: dict[tuple[str, str], str] = {}
        self._versions: Versions[tuple[str, str]] = Versions()

    def missing(self, job: JobView) -> Missing | None:
        """Return since when the job's type is missing in its queue, or None if it is not."""
        call = self._calls.get((job.namespace, job.queue))
        return call.missing(job.type, self._clock()) if call else None

    def knows(self, job: JobView) -> bool:
        """Return whether a worker of the queue may know the job's type, or none is there."""
        call = self._calls.get((job.namespace, job.queue))
        return call is None or call.knows(job.type)

    def slots(self, namespace: str, queue: str) -> int | None:
        """Return how many jobs the queue's workers run at once, None if that is not known."""
        if not self.followed:
            return None
        call = self._calls.get((namespace, queue))
        return call.slots if call else 0

    def crews(self) -> dict[Queue, tuple[int, int]] | None:
        """Return workers and slots of each queue that has any, None if that is not known."""
        if not self.followed:
            return None
        return {queue: (call.workers, call.slots) for queue, call in self._calls.items()}

    def workers(self, namespace: str, queue: str) -> int:
        """Return how many workers take jobs of the queue."""
        call = self._calls.get((namespace, queue))
        return call.workers if call else 0

    def saw_lease(self, obj: JsonObject) -> None:
        """Take a worker's Lease as it is now."""
        meta, queue = child(obj, "metadata"), queue_of(obj)
        namespace, lease = text(meta, "namespace"), text(meta, "name")
        if not self._versions.is_news((namespace, lease), text(meta, "resourceVersion")):
            return
        pod = lease.removeprefix(WORKER_LEASE_PREFIX)
        if self._queue_of_pod.get((namespace, pod), queue) != queue:
            self._leave(namespace, pod)
        self._queue_of_pod[namespace, pod] = queue
        call = self._calls.setdefault((namespace, queue), RollCall())
        before = call.slots
        concerned = call.take(pod, read_entry(obj), self._clock())
        if concerned:
            self._changed((namespace, queue), concerned)
        if call.slots != before:
            self._resized((namespace, queue))

    def lost_lease(self, namespace: str, lease: str) -> None:
        """Take that there is no such Lease any more."""
        self._versions.gone((namespace, lease))
        self._leave(namespace, lease.removeprefix(WORKER_LEASE_PREFIX))

    def _leave(self, namespace: str, pod: str) -> None:
        queue = self._queue_of_pod.pop((namespace, pod), None)
        call = self._calls.get((namespace, queue)) if queue is not None else None
        if call is None or queue is None:
            return
        concerned = call.lose(pod, self._clock())
        self._resized((namespace, queue))
        if not call:
            del self._calls[namespace, queue]
        if concerned:
            self._changed((namespace, queue), concerned)
