"""Admission to queues with limits: writes the AsyncQueue's `status.reservations`.

Each write is conditional on the version of the queue that was read, so that only one of several
operators succeeds. Jobs with a reservation are then admitted by their own reconciliation.
"""

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from asyncjob.errors import ApiError, ConflictError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.names import job_path, queue_path, queue_status_path
from asyncjob_operator.cache.jobs import JobStore, QueueKey
from asyncjob_operator.cache.queues import AdmissionCache, QueueAdmissionState, QueueCache
from asyncjob_operator.cache.workers import WorkerRegistry
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.workqueue import DelayingQueue, ItemBackoff
from asyncjob_operator.core.admission.plan import (
    AdmissionPlan,
    AdmissionSnapshot,
    ReservationState,
    plan_admission,
)
from asyncjob_operator.core.admission.reservations import (
    Reservation,
    is_active,
    is_reclaimable,
    reservations_body,
)
from asyncjob_operator.core.now import Now
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef

log = structlog.get_logger()

METRIC_LABEL: Final = "allot"
STALE_RESERVATION_SECONDS: Final = 1.0
"""Seconds after which reclaimable reservations are removed by a write of their own.

Until then they wait for the next write that grants some.
"""


class AdmissionRounds:
    """Plans rounds of admission from the cache; waits for nothing and writes nothing."""

    def __init__(
        self,
        admission_cache: AdmissionCache,
        queues: QueueCache,
        store: JobStore,
        worker_registry: WorkerRegistry,
        evaluator: JobEvaluator,
    ) -> None:
        self._admission_cache = admission_cache
        self._queues = queues
        self._store = store
        self._worker_registry = worker_registry
        self._evaluator = evaluator

    def unverified(self, queue: QueueKey) -> Sequence[Reservation]:
        """Return the reservations whose jobs are unknown, or perhaps known in an older version."""
        admission = self._admission_cache.get(queue)
        if admission is None:
            return ()
        reservations = admission.reservations.by_uid.values()
        return [
            reservation
            for reservation in reservations
            if self._state(admission, reservation) is ReservationState.UNKNOWN
        ]

    def record(self, queue: QueueKey, reservation: Reservation, obj: JsonObject | None) -> None:
        """Store what a live read of an unverified reservation's job has shown; None: it is gone."""
        admission = self._admission_cache.get(queue)
        if admission and (obj is None or text(child(obj, "metadata"), "uid") != reservation.uid):
            admission.deleted.add(reservation.uid)
        elif admission:
            admission.confirmed.add(reservation)
        if obj is not None:
            self._evaluator.on_update(obj, just_changed=False)

    def plan(self, queue: QueueKey, now: Now) -> AdmissionPlan | None:
        """Plan a round; None for a queue without limits. Admitted jobs leave the pending queue."""
        admission = self._admission_cache.get(queue)
        if admission is None:
            return None
        snapshot = AdmissionSnapshot(
            limits=admission.limits,
            paused=self._queues.view(*queue).paused,
            reservations=admission.reservations,
            active=admission.active,
            pending=admission.pending,
            resumed=admission.resumed,
            rate_window=admission.rate_window,
            slots=self._worker_registry.slots(*queue),
        )
        return plan_admission(
            snapshot, lambda reservation: self._state(admission, reservation), now
        )

    def on_queue_update(self, obj: JsonObject) -> None:
        """Store a queue as a write or a live read has answered it."""
        self._queues.on_update(obj)

    def on_queue_delete(self, queue: QueueKey) -> None:
        """Forget a deleted AsyncQueue."""
        self._queues.on_delete(*queue)

    def requeue(self, plan: AdmissionPlan) -> None:
        """Put the jobs of a plan that was not written back into the pending queue."""
        for job in plan.admitted:
            self._evaluator.evaluate(job.uid)

    def _state(self, admission: QueueAdmissionState, reservation: Reservation) -> ReservationState:
        if reservation.uid in admission.deleted:
            return ReservationState.RECLAIMABLE
        job = self._store.get(reservation.uid)
        if job and not is_reclaimable(
            reservation, job, counts_running=admission.limits.counts_running
        ):
            return ReservationState.IN_USE if is_active(job) else ReservationState.WAITING
        known = reservation.uid in self._store and reservation in admission.confirmed
        return ReservationState.RECLAIMABLE if known else ReservationState.UNKNOWN


class ReservationController:
    """Carries out rounds of admission.

    A queue that is due by time alone goes to the delaying queue; `enqueue` is called with one that
    is due again at once.
    """

    def __init__(
        self,
        session: KubeSession,
        planner: AdmissionRounds,
        *,
        now: Callable[[], Now],
        leads: Callable[[], bool],
        enqueue: Callable[[str], None],
        delaying_queue: DelayingQueue,
        backoff: ItemBackoff,
        metrics: OperatorMetrics,
    ) -> None:
        self._session = session
        self._planner = planner
        self._now = now
        self._leads = leads
        self._enqueue = enqueue
        self._delaying_queue = delaying_queue
        self._backoff = backoff
        self._metrics = metrics
        self._stale_since: dict[str, float] = {}

    async def reconcile(self, key: str) -> None:
        """Grant the reservations that a queue allows now; `key` is namespace/name."""
        namespace, _, name = key.partition("/")
        queue = (namespace, name)
        try:
            await self._verify_reservations(queue)
        except ApiError as error:
            self._requeue_with_backoff(key, error)
            return
        plan = self._planner.plan(queue, self._now())
        if plan is not None:
            await self._apply(key, queue, plan)

    def object_ref(self, key: str) -> ObjectRef:
        """Return the queue without a version: a round depends on many objects, not on it alone."""
        namespace, _, name = key.partition("/")
        return ObjectRef(ObjectKind.QUEUE, namespace, name)

    def requeue_after(self, key: str, seconds: float) -> None:
        """Leave a queue whose reconciliation raised alone for this many seconds."""
        self._delaying_queue.advance(key, self._now().monotonic + seconds)

    async def _verify_reservations(self, queue: QueueKey) -> None:
        for reservation in self._planner.unverified(queue):
            try:
                obj = await self._session.get(job_path(queue[0], reservation.name))
            except ObjectNotFoundError:
                self._planner.record(queue, reservation, None)
            else:
                self._planner.record(queue, reservation, obj)

    async def _apply(self, key: str, queue: QueueKey, plan: AdmissionPlan) -> None:
        now = self._now().monotonic
        if plan.next_at is not None:
            self._delaying_queue.advance(key, plan.next_at)
        if not plan.admitted and not self._must_release_stale(key, plan, now):
            return
        if not self._leads():
            self._planner.requeue(plan)
            return
        body = reservations_body(plan.version, plan.reservations, plan.recent_starts)
        try:
            answer = await self._session.merge_patch(queue_status_path(*queue), body)
        except ApiError as error:
            await self._on_error(key, queue, plan, error)
            return
        self._count("done")
        self._backoff.reset(key)
        self._stale_since.pop(key, None)
        log.debug("jobs admitted", queue=key, admitted=len(plan.admitted), reclaimed=plan.reclaimed)
        self._planner.on_queue_update(answer)

    def _must_release_stale(self, key: str, plan: AdmissionPlan, now: float) -> bool:
        """Return whether reservations have been reclaimable for long enough for their own write."""
        if not plan.reclaimed:
            self._stale_since.pop(key, None)
            return False
        since = self._stale_since.setdefault(key, now)
        if now >= since + STALE_RESERVATION_SECONDS:
            return True
        self._delaying_queue.advance(key, since + STALE_RESERVATION_SECONDS)
        return False

    async def _on_error(
        self, key: str, queue: QueueKey, plan: AdmissionPlan, error: ApiError
    ) -> None:
        """Read the queue again: it may have changed, or the write may have succeeded after all."""
        try:
            self._planner.on_queue_update(await self._session.get(queue_path(*queue)))
        except ObjectNotFoundError:
            self._planner.on_queue_delete(queue)
        except ApiError as other:
            error = other
        self._planner.requeue(plan)
        if isinstance(error, ConflictError):
            self._count("conflict")
            self._enqueue(key)
        else:
            self._count("error")
            self._requeue_with_backoff(key, error)

    def _requeue_with_backoff(self, key: str, error: ApiError) -> None:
        pause = self._backoff.record_failure(key)
        level = log.warning if self._backoff.is_new_error(key, str(error)) else log.debug
        level("jobs not admitted", queue=key, error=str(error), retry_in=round(pause, 1))
        self.requeue_after(key, pause)

    def _count(self, outcome: str) -> None:
        self._metrics.writes.labels(METRIC_LABEL, outcome).inc()
