"""Gives the places in queues with limits away: reserves them in the AsyncQueue's status.

The write is exact on the version of the queue that was looked at, so that of several operators one
succeeds. Admitting the jobs that have a place is then each job's own affair.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ConflictError, ObjectNotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.names import job_path, queue_path, queue_status_path
from asyncjob_operator.apply.patience import ItemBackoff
from asyncjob_operator.core.admission.book import Reservation, reservations_body
from asyncjob_operator.core.admission.plan import AdmissionPlan
from asyncjob_operator.core.moment import Now
from asyncjob_operator.telemetry.containment import ObjectKind, ObjectRef
from asyncjob_operator.telemetry.metrics import OperatorMetrics

log = structlog.get_logger()

METRIC_LABEL: Final = "allot"

STALE_RESERVATION_SECONDS: Final = 1.0
"""Places that are over are struck off with the next that are given, or after so long."""

NamespacedName = tuple[str, str]
"""Namespace and name."""


class RoundPlanner(Protocol):
    """Who knows the queues with limits and plans the rounds."""

    def unverified(self, queue: NamespacedName) -> Sequence[Reservation]:
        """Return the places whose jobs a live read has to tell of."""

    def record(
        self, queue: NamespacedName, reservation: Reservation, obj: JsonObject | None
    ) -> None:
        """Take what the live read has shown."""

    def plan(self, queue: NamespacedName, now: Now) -> AdmissionPlan | None:
        """Plan a round."""

    def requeue(self, plan: AdmissionPlan) -> None:
        """Take that the plan came to nothing."""

    def on_queue_update(self, obj: JsonObject) -> None:
        """Take a queue as it is now."""

    def on_queue_delete(self, queue: NamespacedName) -> None:
        """Take that a queue is gone."""


class ReservationController:
    """Rounds of admission; `enqueue` is called with a queue whose time has come once more."""

    def __init__(
        self,
        session: KubeSession,
        planner: RoundPlanner,
        *,
        now: Callable[[], Now],
        leads: Callable[[], bool],
        enqueue: Callable[[str], None],
        backoff: ItemBackoff,
        metrics: OperatorMetrics,
    ) -> None:
        self._session = session
        self._planner = planner
        self._now = now
        self._leads = leads
        self._enqueue = enqueue
        self._backoff = backoff
        self._metrics = metrics
        self._timers: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._stale_since: dict[str, float] = {}

    async def reconcile(self, key: str) -> None:
        """Give the places away that can be given in a queue now; `key` is namespace/name."""
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
        """Return the queue; many objects bear on a round, so that its own version tells nothing."""
        namespace, _, name = key.partition("/")
        return ObjectRef(ObjectKind.QUEUE, namespace, name)

    def requeue_after(self, key: str, seconds: float) -> None:
        """Leave a queue alone for a while that makes the operator stumble."""
        self._add_after(key, seconds)

    async def _verify_reservations(self, queue: NamespacedName) -> None:
        for place in self._planner.unverified(queue):
            try:
                obj = await self._session.get(job_path(queue[0], place.name))
            except ObjectNotFoundError:
                self._planner.record(queue, place, None)
            else:
                self._planner.record(queue, place, obj)

    async def _apply(self, key: str, queue: NamespacedName, plan: AdmissionPlan) -> None:
        now = self._now().monotonic
        if plan.next_at is not None:
            self._add_after(key, plan.next_at - now)
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
        log.debug("places given", queue=key, given=len(plan.admitted), freed=plan.reclaimed)
        self._planner.on_queue_update(answer)

    def _must_release_stale(self, key: str, plan: AdmissionPlan, now: float) -> bool:
        """Return whether places have been over for long enough for a write of their own."""
        if not plan.reclaimed:
            self._stale_since.pop(key, None)
            return False
        since = self._stale_since.setdefault(key, now)
        if now >= since + STALE_RESERVATION_SECONDS:
            return True
        self._add_after(key, since + STALE_RESERVATION_SECONDS - now)
        return False

    async def _on_error(
        self, key: str, queue: NamespacedName, plan: AdmissionPlan, error: ApiError
    ) -> None:
        """Look at the queue as it is now: the write may have failed for it, or not at all."""
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
        level("places not given", queue=key, error=str(error), retry_in=round(pause, 1))
        self._add_after(key, pause)

    def _add_after(self, key: str, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, seconds)
        due_at, timer = self._timers.get(key, (None, None))
        if due_at is not None and due_at <= at:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = (at, loop.call_at(at, self._on_timer, key))

    def _on_timer(self, key: str) -> None:
        """Look again; a timer may go off a little before its time, and is done all the same."""
        del self._timers[key]
        self._enqueue(key)

    def _count(self, outcome: str) -> None:
        self._metrics.writes.labels(METRIC_LABEL, outcome).inc()
