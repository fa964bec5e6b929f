"""Counts what the status of each AsyncQueue shows."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from asyncjob.json_types import Json
from asyncjob.lifecycle.phases import Phase
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.moment import Moment, epoch
from asyncjob_operator.core.queue_numbers import Numbers, Throughput, status_fields
from asyncjob_operator.core.queue_view import QueueView
from asyncjob_operator.core.sighting import is_claimable
from asyncjob_operator.observe.queues import Name, Queues
from asyncjob_operator.observe.roll_calls import RollCalls
from asyncjob_operator.observe.store import JobStore
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, Subject

_TO_THE_SECOND: Final = len("2026-01-01T00:00:00")

BATCH: Final = 2000
"""So many jobs are looked at before others have their turn in the event loop."""


class QueueSurvey:
    """One look at all jobs for all queues."""

    def __init__(
        self,
        store: JobStore,
        queues: Queues,
        roll_calls: RollCalls,
        now: Callable[[], Moment],
        containment: Containment,
    ) -> None:
        self._store = store
        self._queues = queues
        self._roll_calls = roll_calls
        self._now = now
        self._containment = containment
        self._finished: defaultdict[Name, Throughput] = defaultdict(Throughput)

    def finished(self, queue: Name) -> None:
        """Take that a job of the queue has finished."""
        if queue in self._queues:
            self._finished[queue].note(self._now().monotonic)

    async def news(self) -> list[tuple[Name, dict[str, Json]]]:
        """Return the fields of each queue whose status does not say the same already."""
        if not self._queues.names_in(None):
            return []
        ages = await self.ages()
        counts = self._counts()
        now = self._now()
        found = []
        for queue in self._queues.names_in(None):
            with self._containment.guard(Subject(Kind.QUEUE, *queue), Doing.REPORT):
                numbers = Numbers(
                    counts=counts[queue],
                    oldest=int(ages.get(queue, 0.0)),
                    workers=self._roll_calls.workers(*queue),
                    slots=self._roll_calls.slots(*queue) or 0,
                    finished_per_minute=self._finished[queue].per_minute(now.monotonic),
                    paused=self._queues.view(*queue).paused,
                )
                fields = status_fields(numbers, self._queues.status(queue), now.text)
                if fields is not None:
                    found.append((queue, fields))
        return found

    def _counts(self) -> defaultdict[Name, dict[Phase, int]]:
        counts: defaultdict[Name, dict[Phase, int]] = defaultdict(dict)
        for (namespace, queue, phase), count in self._store.counts.items():
            counts[namespace, queue][phase] = count
        return counts

    async def ages(self) -> dict[Name, float]:
        """Return for how many seconds the oldest job of each queue waits for a start.

        A queue with an AsyncQueue is there with 0, any other only if a job waits.
        """
        oldest = await self._oldest()
        wall = self._now().wall
        waiting: dict[Name, float] = {}
        for queue, since in oldest.items():
            with self._containment.guard(Subject(Kind.QUEUE, *queue), Doing.MEASURE):
                waiting[queue] = max(0.0, wall - epoch(since, otherwise=wall))
        return dict.fromkeys(self._queues.names_in(None), 0.0) | waiting

    async def _oldest(self) -> dict[Name, str]:
        """Return since when the oldest job waits, true to the second: times are text, and long."""
        oldest: dict[Name, str] = {}
        for number, uid in enumerate(self._store.uids()):
            if number % BATCH == 0:
                await asyncio.sleep(0)
            job = self._store.get(uid)
            if job is None or job.phase is not Phase.QUEUED:
                continue
            queue = (job.namespace, job.queue)
            if _waits(job, self._queues.view(*queue)):
                since = job.last_transition_time or job.created
                before = oldest.get(queue)
                if before is None or since[:_TO_THE_SECOND] < before[:_TO_THE_SECOND]:
                    oldest[queue] = since
        return oldest


def _waits(job: JobView, queue: QueueView) -> bool:
    """Return whether a queued job could start, were there a place and a worker for it."""
    return is_claimable(job, queue) or (queue.limited and not queue.paused)
