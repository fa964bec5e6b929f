"""The cache of AsyncQueues, and for each queue with limits the state that admission works on.

That state is its pending and active jobs, its reservations and its recent starts. A queue without
limits has none.
"""

from collections.abc import Callable

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.arrays.chunks import array_of_chunk, is_chunk_type
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.cache.jobs import QueueKey, is_newer
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


class QueueAdmissionState:
    """The admission state of a queue with limits, or of one that still has reservations."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self.reservations: Reservations = NO_RESERVATIONS
        self.pending = PendingQueue(limits.priority_ageing_seconds)
        self.resumed = PendingQueue(limits.priority_ageing_seconds)
        """Pending jobs that go on after a wait: the rate limit does not count them."""

        self.rate_window = RateWindow()
        self.active: dict[str, str] = {}
        """Concurrency keys of the jobs that run or may be claimed at any moment, by UID."""

        self.deleted: set[str] = set()
        """UIDs of jobs with a reservation that a live read has shown to be gone."""

        self.confirmed: set[Reservation] = set()
        """Reservations whose job was seen in the stay in Queued that they are for, or read since.

        Only for these does a view of the job prove that the stay is over: another view may be older
        than the stay.
        """

    def update(self, job: JobView, *, awaits_reservation: bool) -> bool:
        """Record a job as it is now; returns whether a round of admission may be due."""
        changed = self.update_active(job) | self._update_pending(
            job, awaits_reservation=awaits_reservation
        )
        reservation = self.reservations.by_uid.get(job.uid)
        if (
            reservation is not None
            and job.phase is Phase.QUEUED
            and self.reservations.is_reserved(job)
        ):
            self.confirmed.add(reservation)
        counts = self.limits.counts_running
        return changed or (
            reservation is not None and is_reclaimable(reservation, job, counts_running=counts)
        )

    def remove(self, uid: str) -> bool:
        """Forget a deleted job; returns whether a round of admission may be due."""
        was_active = self.active.pop(uid, None) is not None
        was_pending = self.pending.discard(uid) | self.resumed.discard(uid)
        return was_pending | was_active | (uid in self.reservations.by_uid)

    def update_active(self, job: JobView) -> bool:
        """Record whether a job is active; returns whether that has changed."""
        if is_active(job) == (job.uid in self.active):
            return False
        if self.active.pop(job.uid, None) is None:
            self.active[job.uid] = job.gates.concurrency_key or ""
        return True

    def _update_pending(self, job: JobView, *, awaits_reservation: bool) -> bool:
        if not awaits_reservation:
            return self.pending.discard(job.uid) | self.resumed.discard(job.uid)
        key, since = job.gates.concurrency_key or "", to_epoch(job.creation_timestamp, default=0.0)
        array = array_of_chunk(job.name) if is_chunk_type(job.type) else ""
        mine, other = self.pending, self.resumed
        if job.resumed:
            mine, other = other, mine
        other.discard(job.uid)
        return mine.add(
            PendingJob(job.uid, job.name, queued_time_of(job), key, job.priority, since, array)
        )


class AdmissionCache:
    """The admission states by queue.

    `on_change` is called with a queue that needs a round of admission, listeners with the UID of
    each job that has got a reservation.
    """

    def __init__(self, now: Callable[[], Now], on_change: Callable[[QueueKey], None]) -> None:
        self._now = now
        self._on_change = on_change
        self._listeners: list[Callable[[str], None]] = []
        self._states: dict[QueueKey, QueueAdmissionState] = {}

    def add_listener(self, on_reserved: Callable[[str], None]) -> None:
        """Call this with each job that gets a reservation."""
        self._listeners.append(on_reserved)

    def get(self, queue: QueueKey) -> QueueAdmissionState | None:
        """Return the admission state of a queue that has limits or had, None for any other."""
        return self._states.get(queue)

    def is_reserved(self, job: JobView) -> bool:
        """Return whether the job has a reservation in its queue."""
        state = self._states.get((job.namespace, job.queue))
        return state is not None and state.reservations.is_reserved(job)

    def update(self, job: JobView, *, awaits_reservation: bool) -> None:
        """Record a job as it is now."""
        queue = (job.namespace, job.queue)
        state = self._states.get(queue)
        if state and state.update(job, awaits_reservation=awaits_reservation):
            self._on_change(queue)

    def update_active(self, job: JobView) -> None:
        """Record whether a job is active, and nothing else of it."""
        state = self._states.get((job.namespace, job.queue))
        if state:
            state.update_active(job)

    def remove(self, job: JobView) -> None:
        """Forget a deleted job."""
        queue = (job.namespace, job.queue)
        state = self._states.get(queue)
        if state and state.remove(job.uid):
            self._on_change(queue)

    def set_limits(self, queue: QueueKey, limits: QueueLimits) -> None:
        """Set a queue's limits; if they change, `update` has to be called for its jobs again."""
        state = self._states.get(queue)
        if state is None and limits:
            self._states[queue] = QueueAdmissionState(limits)
        elif state and state.limits != limits:
            state.limits, state.pending = limits, PendingQueue(limits.priority_ageing_seconds)
            state.resumed = PendingQueue(limits.priority_ageing_seconds)
            state.active.clear()
        self._on_change(queue)

    def on_reservations(self, queue: QueueKey, obj: JsonObject) -> None:
        """Store the reservations of an AsyncQueue, unless newer ones are known."""
        state, reservations = self._states.get(queue), read_reservations(obj)
        if state is None and reservations.by_uid:
            state = self._states[queue] = QueueAdmissionState(UNLIMITED)
        if state is None or not is_newer(reservations.version, state.reservations.version):
            return
        previous, state.reservations = state.reservations, reservations
        state.deleted &= reservations.by_uid.keys()
        state.confirmed.intersection_update(reservations.by_uid.values())
        state.rate_window.observe_starts(
            reservations.recent_starts, self._now(), just_changed=bool(previous.version)
        )
        for uid, reservation in reservations.by_uid.items():
            if previous.by_uid.get(uid) != reservation:
                for listener in self._listeners:
                    listener(uid)
        if reservations.by_uid != previous.by_uid:
            self._on_change(queue)

    def remove_queue(self, queue: QueueKey) -> None:
        """Forget the admission state of a deleted AsyncQueue."""
        self._states.pop(queue, None)


class QueueCache:
    """Views of AsyncQueues; listeners are called with a queue whose view has changed."""

    def __init__(self, admission_cache: AdmissionCache) -> None:
        self._listeners: list[Callable[[str, str], None]] = []
        self._admission_cache = admission_cache
        self._views: dict[QueueKey, QueueView] = {}
        self._statuses: dict[QueueKey, JsonObject] = {}
        self._versions: VersionTracker[QueueKey] = VersionTracker()

    def __contains__(self, queue: QueueKey) -> bool:
        return queue in self._views

    def add_listener(self, on_change: Callable[[str, str], None]) -> None:
        """Call this with each queue whose view changes."""
        self._listeners.append(on_change)

    def view(self, namespace: str, queue: str) -> QueueView:
        """Return the view; a queue without an AsyncQueue is open."""
        return self._views.get((namespace, queue), OPEN_QUEUE)

    def is_paused(self, namespace: str, queue: str) -> bool:
        """Return whether no job of the queue may be started."""
        return self.view(namespace, queue).paused

    def status(self, queue: QueueKey) -> JsonObject:
        """Return the statistics that the status of an AsyncQueue shows."""
        return self._statuses.get(queue, {})

    def on_update(self, obj: JsonObject) -> None:
        """Store an AsyncQueue; of its status only reservations and recent starts have effects."""
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
            self._notify(*name)

    def on_delete(self, namespace: str, queue: str, version: str = "") -> None:
        """Forget an AsyncQueue that was deleted at this version, unless a newer one is known."""
        if self._versions.is_newer_known((namespace, queue), version):
            return
        self._versions.record_deleted((namespace, queue), version)
        self._statuses.pop((namespace, queue), None)
        if self._views.pop((namespace, queue), None):
            self._admission_cache.remove_queue((namespace, queue))
            self._notify(namespace, queue)

    def names_in(self, namespace: str | None) -> list[QueueKey]:
        """Return the known queues of one namespace, or of all."""
        return [name for name in self._views if namespace in (None, name[0])]

    def _notify(self, namespace: str, queue: str) -> None:
        for listener in self._listeners:
            listener(namespace, queue)
