"""Who waits and who has a place in each queue with limits, as jobs and AsyncQueues come and go.

A queue without limits costs one look into a dictionary.
"""

from collections.abc import Callable

from asyncjob.json_types import JsonObject
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.admission.book import (
    NO_RESERVATIONS,
    Reservation,
    Reservations,
    is_active,
    is_reclaimable,
    queued_time_of,
    read_reservations,
)
from asyncjob_operator.core.admission.limits import UNLIMITED, QueueLimits
from asyncjob_operator.core.admission.line import PendingJob, PendingQueue
from asyncjob_operator.core.admission.pace import RateWindow
from asyncjob_operator.core.moment import Now, to_epoch
from asyncjob_operator.observe.store import is_newer

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
