"""Deletes finished jobs: only in the version judged, a few at a time, namespaces in turn."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from asyncjob.errors import ApiError, ConflictError, ObjectNotFoundError
from asyncjob.json_types import child, items
from asyncjob.kube import KubeSession
from asyncjob.names import job_path
from asyncjob_operator.cache.jobs import JobStore
from asyncjob_operator.controllers.workqueue import MAX_REFUSED_BACKOFF, ItemBackoff
from asyncjob_operator.core.events import EventReason, KubernetesEvent, namespace_event
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import QueueView, RetentionOptions
from asyncjob_operator.core.retention import (
    FinishedJob,
    Removals,
    by_queue,
    plan_removals,
    removable_in_queue,
)
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import Activity, ObjectKind, ObjectRef, Quarantine

log = structlog.get_logger()

METRIC_LABEL: Final = "retention"
MAX_CONCURRENT_DELETIONS: Final = 8
"""Few, because nobody waits for them; `--retention-rate` bounds how many begin in a second."""

YIELD_EVERY: Final = 1000
"""Records that are gone through before the event loop runs others: about 1 ms."""

RETRY_SECONDS: Final = 1.0
"""First pause after a failed deletion."""

MAX_NEEDED_SECONDS: Final = 30 * 86_400.0
"""Seconds after its end for which a pending request, a parent or a dependent job keeps a job."""


IsNeeded = Callable[[FinishedJob], bool]
"""Whether a job that has not started yet depends on a finished one, or its parent is unfinished."""


@dataclass(frozen=True, slots=True)
class RemovalPace:
    """How fast finished jobs are removed."""

    rate: float
    """Removals per second."""

    interval: float
    """Seconds in which a pass has to be over.

    One that would take longer at `rate` goes faster, so that removals keep up with the jobs that
    finish; the number of concurrent deletions stays the same.
    """

    def pause(self, removals: int) -> float:
        """Return how long to wait after each of this many removals, in seconds."""
        return min(1.0 / self.rate, self.interval / max(removals, 1))


@dataclass(slots=True)
class NamespaceJobs:
    """The finished jobs of a namespace that may be removed."""

    unneeded: list[FinishedJob] = field(default_factory=list)
    """Those that all limits apply to."""

    children: list[FinishedJob] = field(default_factory=list)
    """Those of unfinished parents, which go beyond the namespace's limit only."""


class RemovalPlanner:
    """Decides which finished jobs go; deletes none."""

    def __init__(
        self,
        finished_jobs: JobStore,
        *,
        queue_of: Callable[[str, str], QueueView],
        options: RetentionOptions,
        is_needed: IsNeeded,
        feeds_parent: IsNeeded,
        now: Callable[[], Now],
        quarantine: Quarantine,
    ) -> None:
        self._finished_jobs = finished_jobs
        self._queue_of = queue_of
        self.options = options
        self._is_needed = is_needed
        self._feeds_parent = feeds_parent
        self._now = now
        self._quarantine = quarantine

    async def by_namespace(self) -> dict[str, NamespaceJobs]:
        """Return, by namespace, the finished jobs that the limits apply to."""
        found: defaultdict[str, NamespaceJobs] = defaultdict(NamespaceJobs)
        for number, job in enumerate(self._finished_jobs.finished(), 1):
            if self.is_still_needed(job):
                pass
            elif not self.feeds_parent(job):
                found[job.namespace].unneeded.append(job)
            elif not job.deleting:
                found[job.namespace].children.append(job)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return found

    def is_still_needed(self, job: FinishedJob) -> bool:
        """Return whether a pending request, or a job that has yet to start, exempts it from limits.

        That ends after `MAX_NEEDED_SECONDS`: otherwise anyone who may request a rerun, or create a
        suspended job that depends on it, could keep any job without end.
        """
        return self._is_recent(job) and (job.awaits_request or self._is_needed(job))

    def feeds_parent(self, job: FinishedJob) -> bool:
        """Return whether a parent that is unfinished may still ask how the job has ended.

        That ends after `MAX_NEEDED_SECONDS` as well: a job's parent is what its creator says.
        """
        return bool(job.parent_uid) and self._is_recent(job) and self._feeds_parent(job)

    def _is_recent(self, job: FinishedJob) -> bool:
        return self._now().wall - job.completed_at < MAX_NEEDED_SECONDS

    async def plan(self, jobs: NamespaceJobs) -> Removals:
        """Return which jobs of a namespace go.

        That is counted and sorted in a thread: 50,000 jobs would hold the event loop for 150 ms.
        """
        queues = await asyncio.to_thread(by_queue, jobs.unneeded)
        removable: list[FinishedJob] = []
        for members in queues.values():
            removable += await self._removable_in_queue(members)
        return await asyncio.to_thread(
            plan_removals, queues, removable, self.options, jobs.children, self._now().wall
        )

    def forget(self, job: FinishedJob) -> None:
        """Forget a job that is gone."""
        self._finished_jobs.remove(job.uid)

    async def _removable_in_queue(self, jobs: Sequence[FinishedJob]) -> Sequence[FinishedJob]:
        namespace, name = jobs[0].namespace, jobs[0].queue
        with self._quarantine.guard(ObjectRef(ObjectKind.QUEUE, namespace, name), Activity.RETAIN):
            queue, wall = self._queue_of(namespace, name), self._now().wall
            return await asyncio.to_thread(removable_in_queue, jobs, queue, self.options, wall)
        return ()


class RetentionController:
    """Makes passes over all finished jobs, and deletes what the planner says."""

    def __init__(
        self,
        session: KubeSession,
        planner: RemovalPlanner,
        pace: RemovalPace,
        *,
        now: Callable[[], Now],
        leads: Callable[[], bool],
        record_event: Callable[[KubernetesEvent], None],
        metrics: OperatorMetrics,
        quarantine: Quarantine,
    ) -> None:
        self._session = session
        self._planner = planner
        self._pace = pace
        self._backoff = ItemBackoff(RETRY_SECONDS, MAX_REFUSED_BACKOFF)
        self._retry_at: dict[str, float] = {}
        self._now = now
        self._leads = leads
        self._record_event = record_event
        self._metrics = metrics
        self._quarantine = quarantine

    async def run_once(self, on_progress: Callable[[], None]) -> int:
        """Delete what is removable and return how many; `on_progress` is called in between.

        Namespaces take turns, so that none waits for the removals of another.
        """
        now = self._now().monotonic
        self._retry_at = {uid: at for uid, at in self._retry_at.items() if at > now}
        over_limit = 0
        queues: list[Sequence[FinishedJob]] = []
        forced: set[str] = set()
        for namespace, jobs in (await self._planner.by_namespace()).items():
            removals = await self._planner.plan(jobs)
            queues.append(removals.jobs)
            forced |= removals.forced
            if removals.excess:
                over_limit += 1
                self._warn_over_limit(namespace, removals.total)
            on_progress()
            await asyncio.sleep(0)
        self._metrics.set_namespaces_over_limit(over_limit)
        return await self._delete_all(list(round_robin(queues)), forced, on_progress)

    def _warn_over_limit(self, namespace: str, finished: int) -> None:
        limit = self._planner.options.namespace_limit
        log.warning(
            "too many finished jobs: removing the oldest, whatever their age",
            namespace=namespace,
            finished=finished,
            limit=limit,
        )
        message = (
            f"{finished} finished jobs, {limit} may be kept: the oldest go, whatever their age"
        )
        self._record_event(namespace_event(namespace, EventReason.STORE_NEAR_LIMIT, message))

    async def _delete_all(
        self,
        jobs: Sequence[FinishedJob],
        forced: Collection[str],
        on_progress: Callable[[], None],
    ) -> int:
        slots = asyncio.Semaphore(MAX_CONCURRENT_DELETIONS)
        pause = self._pace.pause(len(jobs))
        tasks: list[asyncio.Task[bool]] = []
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                if job.uid in self._retry_at or self._planner.is_still_needed(job):
                    continue
                if job.uid not in forced and self._planner.feeds_parent(job):
                    continue
                on_progress()
                await slots.acquire()
                if not self._leads():
                    break
                tasks.append(group.create_task(self._delete_guarded(job, slots)))
                await asyncio.sleep(pause)
        return sum(task.result() for task in tasks)

    async def _delete_guarded(self, job: FinishedJob, slots: asyncio.Semaphore) -> bool:
        ref = ObjectRef(ObjectKind.JOB, job.namespace, job.name, job.resource_version)
        try:
            with self._quarantine.guard(ref, Activity.RETAIN):
                return await self._delete(job)
        finally:
            slots.release()
        return False

    async def _delete(self, job: FinishedJob) -> bool:
        preconditions = {"uid": job.uid, "resourceVersion": job.resource_version}
        try:
            answer = await self._session.delete(
                job_path(job.namespace, job.name),
                {"preconditions": preconditions, "propagationPolicy": "Background"},
            )
        except ObjectNotFoundError:
            self._forget(job)
        except ConflictError:
            return False
        except ApiError as error:
            self._on_error(job, error)
        else:
            if not items(child(answer, "metadata"), "finalizers"):
                self._forget(job)  # else it stays until others are done with it: the watch tells
            self._metrics.jobs_removed.inc()
            return True
        return False

    def _forget(self, job: FinishedJob) -> None:
        self._planner.forget(job)
        self._backoff.reset(job.uid)

    def _on_error(self, job: FinishedJob, error: ApiError) -> None:
        self._metrics.writes.labels(METRIC_LABEL, "error").inc()
        pause = self._backoff.record_failure(job.uid)
        self._retry_at[job.uid] = self._now().monotonic + pause
        if self._backoff.is_new_error(job.uid, str(error)):
            log.warning(
                "finished job not removed",
                namespace=job.namespace,
                job=job.name,
                error=str(error),
                retry_in=pause,
            )


def round_robin(queues: Iterable[Sequence[FinishedJob]]) -> Iterator[FinishedJob]:
    """Yield the first job of each sequence, then the second of each, and so on."""
    turns = deque(map(iter, queues))
    while turns:
        turn = turns.popleft()
        job = next(turn, None)
        if job is not None:
            yield job
            turns.append(turn)
