"""Removes finished jobs: exact on the version judged, a few at a time, namespaces in turn."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ConflictError, NotFoundError
from asyncjob.kube import KubeSession
from asyncjob.names import job_path
from asyncjob_operator.apply.patience import LONGEST_REFUSED, Patience
from asyncjob_operator.core.job_event import Notice, namespace_notice
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.core.queue_view import QueueView
from asyncjob_operator.core.retention import Doomed, Finished, doomed, removable
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, Subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

NAME: Final = "retention"
CONCURRENCY: Final = 8
AT_ONCE: Final = 1000
"""So many records are looked at before others get the event loop: about 1 ms."""

RETRY_SECONDS: Final = 1.0
LONGEST_NEEDED: Final = 30 * 86_400.0
"""Seconds after its end for which a job is kept because one that has not started waits for it."""

STORE_NEAR_LIMIT: Final = "StoreNearLimit"


class Shelf(Protocol):
    """Where the records of finished jobs are."""

    def finished(self) -> Sequence[Finished]:
        """Return all records."""

    def remove(self, uid: str) -> None:
        """Forget a job."""


Needed = Callable[[Finished], bool]
"""Whether a job that has not started yet depends on a finished one."""


class Sweep:
    """One pass over all finished jobs at a time; `rate` is removals per second.

    A pass that would take longer than `interval` seconds at that rate goes faster, so that
    removals keep up with whatever finishes; how many are under way at once stays the same.
    """

    def __init__(
        self,
        session: KubeSession,
        shelf: Shelf,
        *,
        queue_of: Callable[[str, str], QueueView],
        options: RetentionOptions,
        rate: float,
        interval: float,
        now: Callable[[], Moment],
        leads: Callable[[], bool],
        tell: Callable[[Notice], None],
        needed: Needed,
        metrics: Metrics,
        containment: Containment,
    ) -> None:
        self._session = session
        self._shelf = shelf
        self._queue_of = queue_of
        self._options = options
        self._rate = rate
        self._interval = interval
        self._patience = Patience(RETRY_SECONDS, LONGEST_REFUSED)
        self._rests_until: dict[str, float] = {}
        self._now = now
        self._leads = leads
        self._tell = tell
        self._needed = needed
        self._metrics = metrics
        self._containment = containment

    async def sweep(self, went_on: Callable[[], None] = lambda: None) -> int:
        """Remove what is to go and return how many went; `went_on` is called in between.

        Namespaces take turns, so that none waits for what another has to remove.
        """
        now = self._now().monotonic
        self._rests_until = {uid: at for uid, at in self._rests_until.items() if at > now}
        crowded = 0
        queues: list[Sequence[Finished]] = []
        for namespace, jobs in (await self._unneeded()).items():
            doomed = self._doomed(jobs)
            queues.append(doomed.jobs)
            if doomed.excess:
                crowded += 1
                self._warn(namespace, doomed.held)
            went_on()
            await asyncio.sleep(0)
        self._metrics.crowded(crowded)
        return await self._remove(list(in_turn(queues)), went_on)

    async def _unneeded(self) -> dict[str, list[Finished]]:
        """Return, by namespace, the finished jobs that no job depends on which has yet to start."""
        found: defaultdict[str, list[Finished]] = defaultdict(list)
        for number, job in enumerate(self._shelf.finished(), 1):
            if not self._kept(job):
                found[job.namespace].append(job)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    def _kept(self, job: Finished) -> bool:
        """Return whether it stays for the sake of a job that waits, whatever its age and number.

        Not for ever: who may create a suspended job could else keep any other.
        """
        return self._now().wall - job.completed < LONGEST_NEEDED and self._needed(job)

    def _doomed(self, jobs: Sequence[Finished]) -> Doomed:
        return doomed(jobs, self._removable, self._options)

    def _removable(self, jobs: Sequence[Finished]) -> Sequence[Finished]:
        namespace, name = jobs[0].namespace, jobs[0].queue
        with self._containment.guard(Subject(Kind.QUEUE, namespace, name), Doing.RETAIN):
            queue = self._queue_of(namespace, name)
            return removable(jobs, queue, self._options, self._now().wall)
        return ()

    def _warn(self, namespace: str, finished: int) -> None:
        limit = self._options.namespace_limit
        log.warning(
            "too many finished jobs: removing the oldest, whatever their age",
            namespace=namespace,
            finished=finished,
            limit=limit,
        )
        message = (
            f"{finished} finished jobs, {limit} may be kept: the oldest go, whatever their age"
        )
        self._tell(namespace_notice(namespace, STORE_NEAR_LIMIT, message))

    async def _remove(self, jobs: Sequence[Finished], went_on: Callable[[], None]) -> int:
        places = asyncio.Semaphore(CONCURRENCY)
        pause = min(1.0 / self._rate, self._interval / max(len(jobs), 1))
        tasks: list[asyncio.Task[bool]] = []
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                if job.uid in self._rests_until or self._kept(job):
                    continue
                went_on()
                await places.acquire()
                if not self._leads():
                    break
                tasks.append(group.create_task(self._remove_one(job, places)))
                await asyncio.sleep(pause)
        return sum(task.result() for task in tasks)

    async def _remove_one(self, job: Finished, places: asyncio.Semaphore) -> bool:
        one = Subject(Kind.JOB, job.namespace, job.name, job.resource_version)
        try:
            with self._containment.guard(one, Doing.RETAIN):
                return await self._delete(job)
        finally:
            places.release()
        return False

    async def _delete(self, job: Finished) -> bool:
        preconditions = {"uid": job.uid, "resourceVersion": job.resource_version}
        try:
            await self._session.delete(
                job_path(job.namespace, job.name),
                {"preconditions": preconditions, "propagationPolicy": "Background"},
            )
        except NotFoundError:
            self._gone(job)
        except ConflictError:
            return False
        except ApiError as error:
            self._refused(job, error)
        else:
            self._gone(job)
            self._metrics.removed.inc()
            return True
        return False

    def _gone(self, job: Finished) -> None:
        self._shelf.remove(job.uid)
        self._patience.succeeded(job.uid)

    def _refused(self, job: Finished, error: ApiError) -> None:
        self._metrics.writes.labels(NAME, "error").inc()
        pause = self._patience.failed(job.uid)
        self._rests_until[job.uid] = self._now().monotonic + pause
        if self._patience.is_news(job.uid, str(error)):
            log.warning(
                "finished job not removed",
                namespace=job.namespace,
                job=job.name,
                error=str(error),
                retry_in=pause,
            )


def in_turn(queues: Iterable[Sequence[Finished]]) -> Iterator[Finished]:
    """Yield one of each, then the next of each, until none is left."""
    for turn in zip_longest(*queues):
        yield from (job for job in turn if job is not None)
