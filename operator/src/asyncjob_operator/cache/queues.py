"""The cache of AsyncQueues, and for each queue with limits the state that admission works on.

That is its pending and active jobs, its reservations and its recent starts. A queue without limits
costs one look into a dictionary.
"""

from collections.abc import Callable

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.cache.jobs import is_newer
from asyncjob_operator.cache.versions import VersionTracker
from asyncjob_operator.core.admission.pending_queue import PendingJob, PendingQueue
from asyncjob_operator.core.admission.rate_window import RateWindow
from asyncjob_operator.core.admission.reservations import (
    NO_RESERVATIONS,
    Reservation,
    Reservations,
    is_active,
    is_reclaimable,
    queued_time_of,
    read_reservations,
)
from asyncjob_operator.core.now import Now, to_epoch
from asyncjob_operator.core.options import OPEN_QUEUE, UNLIMITED, QueueLimits, QueueView, read_queue
from asyncjob_operator.core.queue_stats import shown_stats

QueueKey = tuple[str, str]
"""Namespace and name."""


class QueueAdmissionState:
    """One queue with limits, or one whose limits were lifted and whose book is not empty yet.

    `deleted` are the UIDs of jobs that have a place and, by a live read, are no more. `confirmed`
    are the places whose jobs were seen in the stay they are for, or read live since: only what is
    seen of such a job tells that its stay is over. Another view may be older than the stay.
    """

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self.reservations: Reservations = NO_RESERVATIONS
        self.pending = PendingQueue(limits.priority_ageing_seconds)
        self.rate_window = RateWindow()
        self.active: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.confirmed: set[Reservation] = set()

    def update(self, job: JobView, *, awaits_reservation: bool) -> bool:
        """Take a job as it is now; returns whether somebody may get a place by that."""
        changed = self.update_active(job) | self._update_pending(
            job, awaits_reservation=awaits_reservation
        )
        place = self.reservations.by_uid.get(job.uid)
        if place is not None and job.phase is Phase.QUEUED and self.reservations.is_reserved(job):
            self.confirmed.add(place)
        counts = self.limits.counts_running
        return changed or (place is not None and is_reclaimable(place, job, counts_running=counts))

    def remove(self, uid: str) -> bool:
        """Take that a job is gone; returns whether somebody may get a place by that."""
        left = self.active.pop(uid, None) is not None
        return self.pending.discard(uid) | left | (uid in self.reservations.by_uid)

    def update_active(self, job: JobView) -> bool:
        """Take whether a job runs, or may any moment; returns whether that is news."""
        if is_active(job) == (job.uid in self.active):
            return False
        if self.active.pop(job.uid, None) is None:
            self.active[job.uid] = job.gates.concurrency_key or ""
        return True

    def _update_pending(self, job: JobView, *, awaits_reservation: bool) -> bool:
        if not awaits_reservation:
            return self.pending.discard(job.uid)
        key, since = job.gates.concurrency_key or "", to_epoch(job.creation_timestamp, default=0.0)
        return self.pending.add(
            PendingJob(job.uid, job.name, queued_time_of(job), key, job.priority, since)
        )


class AdmissionCache:
    """By queue. `on_change` is called with a queue in which somebody may get a place.

    `on_reserved` is called with the UID of a job that has one now.
    """

    def __init__(
        self,
        now: Callable[[], Now],
        on_change: Callable[[QueueKey], None],
        on_reserved: Callable[[str], None],
    ) -> None:
        self._now = now
        self._on_change = on_change
        self._on_reserved = on_reserved
        self._states: dict[QueueKey, QueueAdmissionState] = {}

    def get(self, queue: QueueKey) -> QueueAdmissionState | None:
        """Return the hall of a queue, if it has limits or had."""
        return self._states.get(queue)

    def is_reserved(self, job: JobView) -> bool:
        """Return whether the job has a place in its queue."""
        hall = self._states.get((job.namespace, job.queue))
        return hall is not None and hall.reservations.is_reserved(job)

    def update(self, job: JobView, *, awaits_reservation: bool) -> None:
        """Take a job as it is now."""
        queue = (job.namespace, job.queue)
        hall = self._states.get(queue)
        if hall and hall.update(job, awaits_reservation=awaits_reservation):
            self._on_change(queue)

    def update_active(self, job: JobView) -> None:
        """Take whether a job runs, and no more of it."""
        hall = self._states.get((job.namespace, job.queue))
        if hall:
            hall.update_active(job)

    def remove(self, job: JobView) -> None:
        """Take that a job is gone."""
        queue = (job.namespace, job.queue)
        hall = self._states.get(queue)
        if hall and hall.remove(job.uid):
            self._on_change(queue)

    def set_limits(self, queue: QueueKey, limits: QueueLimits) -> None:
        """Take the limits as they are now; who is in the queue has to be shown anew then."""
        hall = self._states.get(queue)
        if hall is None and limits:
            self._states[queue] = QueueAdmissionState(limits)
        elif hall and hall.limits != limits:
            hall.limits, hall.pending = limits, PendingQueue(limits.priority_ageing_seconds)
            hall.active.clear()
        self._on_change(queue)

    def on_reservations(self, queue: QueueKey, obj: JsonObject) -> None:
        """Take the book as it is now, unless a newer one is known."""
        hall, book = self._states.get(queue), read_reservations(obj)
        if hall is None and book.by_uid:
            hall = self._states[queue] = QueueAdmissionState(UNLIMITED)
        if hall is None or not is_newer(book.version, hall.reservations.version):
            return
        before, hall.reservations = hall.reservations, book
        hall.deleted &= book.by_uid.keys()
        hall.confirmed.intersection_update(book.by_uid.values())
        hall.rate_window.observe_starts(book.recent_starts, self._now(), live=bool(before.version))
        for uid, place in book.by_uid.items():
            if before.by_uid.get(uid) != place:
                self._on_reserved(uid)
        if book.by_uid != before.by_uid:
            self._on_change(queue)

    def remove_queue(self, queue: QueueKey) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._states.pop(queue, None)


QueueName = tuple[str, str]


class QueueCache:
    """Views by namespace and name; `on_change` is called with a queue that is not as it was."""

    def __init__(
        self, on_change: Callable[[str, str], None], admission_cache: AdmissionCache
    ) -> None:
        self._on_change = on_change
        self._admission_cache = admission_cache
        self._views: dict[QueueName, QueueView] = {}
        self._statuses: dict[QueueName, JsonObject] = {}
        self._versions: VersionTracker[QueueName] = VersionTracker()

    def __contains__(self, queue: QueueName) -> bool:
        return queue in self._views

    def view(self, namespace: str, queue: str) -> QueueView:
        """Return the view; a queue without an AsyncQueue is open."""
        return self._views.get((namespace, queue), OPEN_QUEUE)

    def status(self, queue: QueueName) -> JsonObject:
        """Return the numbers that the status of an AsyncQueue shows."""
        return self._statuses.get(queue, {})

    def on_update(self, obj: JsonObject) -> None:
        """Take a queue as it was then; of its status only the book is news."""
        meta, view = child(obj, "metadata"), read_queue(obj)
        name = (text(meta, "namespace"), text(meta, "name"))
        if not self._versions.accept(name, text(meta, "resourceVersion")):
            return
        self._statuses[name] = shown_stats(obj)
        is_new = self._views.get(name) != view
        if is_new:
            self._views[name] = view
            self._admission_cache.set_limits(name, view.limits)
        self._admission_cache.on_reservations(name, obj)
        if is_new:
            self._on_change(*name)

    def on_delete(self, namespace: str, queue: str) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._versions.record_deleted((namespace, queue))
        self._statuses.pop((namespace, queue), None)
        if self._views.pop((namespace, queue), None):
            self._admission_cache.remove_queue((namespace, queue))
            self._on_change(namespace, queue)

    def names_in(self, namespace: str | None) -> list[QueueName]:
        """Return the known queues of one namespace, or of all."""
        return [name for name in self._views if namespace in (None, name[0])]
