"""Gives the places in queues with limits away: reserves them in the AsyncQueue's status.

The write is exact on the version of the queue that was looked at, so that of several operators one
succeeds. Admitting the jobs that have a place is then each job's own affair.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ConflictError, NotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube import KubeSession
from asyncjob.names import job_path, queue_path, queue_status_path
from asyncjob_operator.apply.patience import Patience
from asyncjob_operator.core.admission.book import Place, book_body
from asyncjob_operator.core.admission.plan import Plan
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.telemetry.containment import Kind, Subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

NAME: Final = "allot"

TIDY_SECONDS: Final = 1.0
"""Places that are over are struck off with the next that are given, or after so long."""

Queue = tuple[str, str]
"""Namespace and name."""


class Rooms(Protocol):
    """Who knows the queues with limits and plans the rounds."""

    def doubts(self, queue: Queue) -> Sequence[Place]:
        """Return the places whose jobs a live read has to tell of."""

    def settle(self, queue: Queue, place: Place, obj: JsonObject | None) -> None:
        """Take what the live read has shown."""

    def plan(self, queue: Queue, now: Moment) -> Plan | None:
        """Plan a round."""

    def put_back(self, plan: Plan) -> None:
        """Take that the plan came to nothing."""

    def saw(self, obj: JsonObject) -> None:
        """Take a queue as it is now."""

    def lost(self, queue: Queue) -> None:
        """Take that a queue is gone."""


class Allotment:
    """Rounds of admission; `again` is called with a queue whose time has come once more."""

    def __init__(
        self,
        session: KubeSession,
        rooms: Rooms,
        *,
        now: Callable[[], Moment],
        leads: Callable[[], bool],
        again: Callable[[str], None],
        patience: Patience,
        metrics: Metrics,
    ) -> None:
        self._session = session
        self._rooms = rooms
        self._now = now
        self._leads = leads
        self._again = again
        self._patience = patience
        self._metrics = metrics
        self._timers: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._untidy_since: dict[str, float] = {}

    async def act(self, key: str) -> None:
        """Give the places away that can be given in a queue now; `key` is namespace/name."""
        namespace, _, name = key.partition("/")
        queue = (namespace, name)
        try:
            await self._settle_doubts(queue)
        except ApiError as error:
            self._postpone(key, error)
            return
        plan = self._rooms.plan(queue, self._now())
        if plan is not None:
            await self._carry_out(key, queue, plan)

    def subject(self, key: str) -> Subject:
        """Return the queue; many objects bear on a round, so that its own version tells nothing."""
        namespace, _, name = key.partition("/")
        return Subject(Kind.QUEUE, namespace, name)

    def broken(self, key: str, seconds: float) -> None:
        """Leave a queue alone for a while that makes the operator stumble."""
        self._look_again_in(key, seconds)

    async def _settle_doubts(self, queue: Queue) -> None:
        for place in self._rooms.doubts(queue):
            try:
                obj = await self._session.get(job_path(queue[0], place.name))
            except NotFoundError:
                self._rooms.settle(queue, place, None)
            else:
                self._rooms.settle(queue, place, obj)

    async def _carry_out(self, key: str, queue: Queue, plan: Plan) -> None:
        now = self._now().monotonic
        if plan.next_at is not None:
            self._look_again_in(key, plan.next_at - now)
        if not plan.taken and not self._is_untidy(key, plan, now):
            return
        if not self._leads():
            self._rooms.put_back(plan)
            return
        body = book_body(plan.version, plan.places, plan.starts)
        try:
            answer = await self._session.merge_patch(queue_status_path(*queue), body)
        except ApiError as error:
            await self._failed(key, queue, plan, error)
            return
        self._count("done")
        self._patience.succeeded(key)
        self._untidy_since.pop(key, None)
        log.debug("places given", queue=key, given=len(plan.taken), freed=plan.freed)
        self._rooms.saw(answer)

    def _is_untidy(self, key: str, plan: Plan, now: float) -> bool:
        """Return whether places have been over for long enough for a write of their own."""
        if not plan.freed:
            self._untidy_since.pop(key, None)
            return False
        since = self._untidy_since.setdefault(key, now)
        if now >= since + TIDY_SECONDS:
            return True
        self._look_again_in(key, since + TIDY_SECONDS - now)
        return False

    async def _failed(self, key: str, queue: Queue, plan: Plan, error: ApiError) -> None:
        """Look at the queue as it is now: the write may have failed for it, or not at all."""
        try:
            self._rooms.saw(await self._session.get(queue_path(*queue)))
        except NotFoundError:
            self._rooms.lost(queue)
        except ApiError as other:
            error = other
        self._rooms.put_back(plan)
        if isinstance(error, ConflictError):
            self._count("conflict")
            self._again(key)
        else:
            self._count("error")
            self._postpone(key, error)

    def _postpone(self, key: str, error: ApiError) -> None:
        pause = self._patience.failed(key)
        level = log.warning if self._patience.is_news(key, str(error)) else log.debug
        level("places not given", queue=key, error=str(error), retry_in=round(pause, 1))
        self._look_again_in(key, pause)

    def _look_again_in(self, key: str, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, seconds)
        due_at, timer = self._timers.get(key, (None, None))
        if due_at is not None and due_at <= at:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = (at, loop.call_at(at, self._time_has_come, key))

    def _time_has_come(self, key: str) -> None:
        """Look again; a timer may go off a little before its time, and is done all the same."""
        del self._timers[key]
        self._again(key)

    def _count(self, outcome: str) -> None:
        self._metrics.writes.labels(NAME, outcome).inc()
