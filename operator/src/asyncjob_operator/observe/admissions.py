"""What a round of admission needs to know, and what it learns: the observer's side of it."""

from collections.abc import Sequence

from asyncjob.json_types import JsonObject, child, text
from asyncjob_operator.core.admission.book import Reservation, is_active, is_reclaimable
from asyncjob_operator.core.admission.plan import (
    AdmissionPlan,
    AdmissionSnapshot,
    ReservationState,
    plan_admission,
)
from asyncjob_operator.core.moment import Now
from asyncjob_operator.observe.halls import QueueAdmissionState, QueueKey
from asyncjob_operator.observe.observer import JobController


class AdmissionRounds:
    """Rounds of admission as far as they wait for nothing and write nothing."""

    def __init__(self, controller: JobController) -> None:
        self._controller = controller

    def unverified(self, queue: QueueKey) -> Sequence[Reservation]:
        """Return the places whose jobs may be known here as they were before, or not at all."""
        hall = self._controller.admission_cache.get(queue)
        if hall is None:
            return ()
        places = hall.reservations.by_uid.values()
        return [place for place in places if self._state(hall, place) is ReservationState.UNKNOWN]

    def record(self, queue: QueueKey, reservation: Reservation, obj: JsonObject | None) -> None:
        """Take what a live read of a doubtful place's job has shown; None: there is none."""
        hall = self._controller.admission_cache.get(queue)
        if hall and (obj is None or text(child(obj, "metadata"), "uid") != reservation.uid):
            hall.deleted.add(reservation.uid)
        elif hall:
            hall.confirmed.add(reservation)
        if obj is not None:
            self._controller.on_update(obj, live=False)

    def plan(self, queue: QueueKey, now: Now) -> AdmissionPlan | None:
        """Plan a round; None for a queue that has no limits. Who is taken has left the line."""
        hall = self._controller.admission_cache.get(queue)
        if hall is None:
            return None
        table = AdmissionSnapshot(
            limits=hall.limits,
            paused=self._controller.queues.view(*queue).paused,
            reservations=hall.reservations,
            active=hall.active,
            pending=hall.pending,
            rate_window=hall.rate_window,
            slots=self._controller.worker_registry.slots(*queue),
        )
        return plan_admission(table, lambda place: self._state(hall, place), now)

    def on_queue_update(self, obj: JsonObject) -> None:
        """Take a queue as a write or a live read has answered it."""
        self._controller.queues.on_update(obj)

    def on_queue_delete(self, queue: QueueKey) -> None:
        """Take that there is no such AsyncQueue any more."""
        self._controller.queues.on_delete(*queue)

    def requeue(self, plan: AdmissionPlan) -> None:
        """Line those up again who were taken for a plan that came to nothing."""
        for who in plan.admitted:
            self._controller.evaluate(who.uid)

    def _state(self, admission: QueueAdmissionState, reservation: Reservation) -> ReservationState:
        if reservation.uid in admission.deleted:
            return ReservationState.RECLAIMABLE
        job = self._controller.store.get(reservation.uid)
        if job and not is_reclaimable(
            reservation, job, counts_running=admission.limits.counts_running
        ):
            return ReservationState.IN_USE if is_active(job) else ReservationState.WAITING
        known = reservation.uid in self._controller.store and reservation in admission.confirmed
        return ReservationState.RECLAIMABLE if known else ReservationState.UNKNOWN
