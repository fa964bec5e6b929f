"""Removes finished jobs: exact on the version judged, at a bounded rate."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

import structlog

from asyncjob.errors import ApiError, ConflictError, NotFoundError
from asyncjob.kube import KubeSession
from asyncjob.names import job_path
from asyncjob_operator.core.job_event import Notice, namespace_notice
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.options import RetentionOptions
from asyncjob_operator.core.queue_view import QueueView
from asyncjob_operator.core.retention import Finished, overflow, removable
from asyncjob_operator.telemetry.containment import Containment, Doing, Kind, Subject
from asyncjob_operator.telemetry.metrics import Metrics

log = structlog.get_logger()

CONCURRENCY: Final = 8
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
    """One pass over all finished jobs at a time; `rate` is removals per second."""

    def __init__(
        self,
        session: KubeSession,
        shelf: Shelf,
        *,
        queue_of: Callable[[str, str], QueueView],
        options: RetentionOptions,
        rate: float,
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
        self._pause = 1.0 / rate
        self._now = now
        self._leads = leads
        self._tell = tell
        self._needed = needed
        self._metrics = metrics
        self._containment = containment

    async def sweep(self, went_on: Callable[[], None] = lambda: None) -> int:
        """Remove what is to go and return how many went; `went_on` is called in between."""
        removed = 0
        for jobs in _grouped(self._shelf.finished(), lambda job: (job.namespace, job.queue)):
            gone = self._removable(jobs)
            removed += await self._remove(gone, went_on)
            await asyncio.sleep(0)
        crowded = 0
        for jobs in _grouped(self._shelf.finished(), lambda job: (job.namespace, "")):
            excess = overflow(jobs, self._options)
            if excess:
                crowded += 1
                self._warn(jobs[0].namespace, len(jobs))
                removed += await self._remove(excess, went_on)
        self._metrics.crowded(crowded)
        return removed

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

    async def _remove(self, jobs: Iterable[Finished], went_on: Callable[[], None]) -> int:
        places = asyncio.Semaphore(CONCURRENCY)
        tasks: list[asyncio.Task[bool]] = []
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                if self._needed(job):
                    continue
                went_on()
                await places.acquire()
                if not self._leads():
                    break
                tasks.append(group.create_task(self._remove_one(job, places)))
                await asyncio.sleep(self._pause)
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
            self._shelf.remove(job.uid)
        except ConflictError:
            return False
        except ApiError as error:
            log.warning("finished job not removed", job=job.name, error=str(error))
        else:
            self._shelf.remove(job.uid)
            self._metrics.removed.inc()
            return True
        return False


def _grouped(
    jobs: Iterable[Finished], key: Callable[[Finished], tuple[str, str]]
) -> list[list[Finished]]:
    groups: defaultdict[tuple[str, str], list[Finished]] = defaultdict(list)
    for job in jobs:
        groups[key(job)].append(job)
    return list(groups.values())
