"""What is cached of one namespace: jobs, queues, cron jobs, arrays and Leases, kept by watches.

Queues are shown as they are now: what their AsyncQueue says, jobs counted in the cache, workers by
their Leases; a queue without an AsyncQueue appears if it has jobs or workers.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.kube.informer import WatchObserver, run_informer
from asyncjob.kube.transport import Params
from asyncjob.kube.watch import WatchEvent
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import (
    ARRAY_KIND,
    ARRAYS,
    COMPONENT_LABEL,
    CRON_JOB_KIND,
    CRON_JOBS,
    JOB_KIND,
    JOBS,
    QUEUES,
    WORKER_COMPONENT,
    collection_path,
)
from asyncjob.rest.arrays import ArrayInfo
from asyncjob.rest.resources import (
    CronJobInfo,
    QueueInfo,
    WorkerInfo,
    is_lease_expired,
    queue_of,
    worker_of,
)
from asyncjob_gateway import problem_types
from asyncjob_gateway.cache.changes import ChangeBuffer
from asyncjob_gateway.cache.entries import (
    TrimmedArray,
    TrimmedCronJob,
    TrimmedJob,
    parse_version,
    trim_lease,
    trim_queue,
)
from asyncjob_gateway.cache.jobs import JobCache
from asyncjob_gateway.cache.queue_capacity import QueueCapacity
from asyncjob_gateway.errors import RefusedError


class ObjectCache:
    """The objects of one small collection in one namespace, by name."""

    def __init__(self) -> None:
        self.synced = False
        self.by_name: dict[str, JsonObject] = {}

    def replace(self, objects: Sequence[JsonObject]) -> None:
        """Take the whole collection again."""
        self.by_name = {_name_of(obj): obj for obj in objects}
        self.synced = True

    def apply(self, event: WatchEvent) -> None:
        """Take one change, unless a later one has been taken already."""
        known = self.by_name.get(_name_of(event.object))
        if event.type == "DELETED":
            self.by_name.pop(_name_of(event.object), None)
        elif known is None or not _is_newer(known, event.object):
            self.by_name[_name_of(event.object)] = event.object

    def put_written(self, obj: JsonObject) -> None:
        """Take the answer to a change of our own, so that lists have it before the watch shows it.

        An object that is not known is left to the watch: it may have been deleted since.
        """
        known = self.by_name.get(_name_of(obj))
        if known is not None and _is_newer(obj, known):
            self.by_name[_name_of(obj)] = obj


def _name_of(obj: JsonObject) -> str:
    return text(child(obj, "metadata"), "name")


def _is_newer(one: JsonObject, other: JsonObject) -> bool:
    """Return whether it is a later version of the same object."""
    mine, theirs = child(one, "metadata"), child(other, "metadata")
    return text(mine, "uid") == text(theirs, "uid") and parse_version(
        text(mine, "resourceVersion")
    ) > parse_version(text(theirs, "resourceVersion"))


PhaseCounts = Mapping[tuple[str, Phase], int]


def build_queues(
    namespace: str,
    objects: Iterable[JsonObject],
    counts: PhaseCounts,
    workers: Sequence[WorkerInfo],
) -> list[QueueInfo]:
    """Return all queues by name."""
    known = {info.name: info for info in map(queue_of, objects)}
    names = {*known, *(queue for (queue, _), count in counts.items() if count)}
    names |= {worker.queue for worker in workers}
    return [
        with_counts(known.get(name) or unconfigured_queue(namespace, name), counts, workers)
        for name in sorted(names)
    ]


def live_workers(
    leases: Iterable[JsonObject], running: Counter[str], now: datetime
) -> list[WorkerInfo]:
    """Return the workers that are not silent; `running` counts jobs by pod."""
    live = [worker_of(lease) for lease in leases if not is_lease_expired(lease, now)]
    found = [one.model_copy(update={"running": running[one.pod]}) for one in live]
    return sorted(found, key=lambda one: (one.queue, one.pod))


def unconfigured_queue(namespace: str, name: str) -> QueueInfo:
    """Return a queue without an AsyncQueue."""
    return QueueInfo(name=name, namespace=namespace, configured=False)


def with_counts(info: QueueInfo, counts: PhaseCounts, workers: Sequence[WorkerInfo]) -> QueueInfo:
    """Return the queue with its jobs and workers as they are known here."""
    serving = [worker for worker in workers if worker.queue == info.name]
    jobs = {phase.value: counts.get((info.name, phase), 0) for phase in Phase}
    running = jobs[Phase.RUNNING.value]
    return info.model_copy(
        update={
            "counts": {phase: count for phase, count in jobs.items() if count},
            "workers": len(serving),
            "slots": sum(worker.slots for worker in serving),
            "drained": info.paused and not running,
        }
    )


Trim = Callable[[JsonObject], JsonObject]

WORKER_LEASES = {"labelSelector": f"{COMPONENT_LABEL}={WORKER_COMPONENT}"}


class _JobWatch(WatchObserver):
    """Tells those who follow changes of each new list, besides another observer."""

    def __init__(self, observer: WatchObserver, changes: ChangeBuffer) -> None:
        self._observer = observer
        self._changes = changes

    def watch_opened(self) -> None:
        self._observer.watch_opened()

    def listed(self, version: str) -> None:
        self._changes.on_listed(parse_version(version))


class NamespaceCache:
    """Jobs, queues, cron jobs, arrays and workers of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.changes = ChangeBuffer()
        self.jobs = JobCache(self.changes)
        self.capacity = QueueCapacity(self.jobs)
        self._queues = ObjectCache()
        self._cron_jobs = ObjectCache()
        self._arrays = ObjectCache()
        self._worker_leases = ObjectCache()

    @property
    def synced(self) -> bool:
        """Whether everything has been listed once."""
        small = (self._queues, self._cron_jobs, self._arrays, self._worker_leases)
        return self.jobs.synced and all(cache.synced for cache in small)

    def require_synced(self) -> None:
        """Raise RefusedError while what there is is not known."""
        if not self.synced:
            raise RefusedError(problem_types.NOT_SYNCED, retry_after=1.0)

    def queue_object(self, name: str) -> JsonObject | None:
        """Return a queue's AsyncQueue, if it has one."""
        return self._queues.by_name.get(name)

    def workers(self, now: datetime) -> list[WorkerInfo]:
        """Return the live workers."""
        return live_workers(self._worker_leases.by_name.values(), self._running_by_pod(), now)

    def queues(self, now: datetime) -> list[QueueInfo]:
        """Return all queues."""
        objects = self._queues.by_name.values()
        return build_queues(self.name, objects, self.jobs.counts, self.workers(now))

    def queue(self, name: str, now: datetime, read: QueueInfo | None = None) -> QueueInfo:
        """Return one queue; `read` is what its AsyncQueue says, if that has just been read."""
        obj = self.queue_object(name)
        known = read or (queue_of(obj) if obj else unconfigured_queue(self.name, name))
        return with_counts(known, self.jobs.counts, self.workers(now))

    def cron_jobs(self) -> list[CronJobInfo]:
        """Return all cron jobs by name."""
        known = sorted(self._cron_jobs.by_name.items())
        return [cron.info for _, cron in known if isinstance(cron, TrimmedCronJob) and cron.info]

    def arrays(self) -> list[ArrayInfo]:
        """Return all arrays, in no order."""
        known = self._arrays.by_name.values()
        return [array.info for array in known if isinstance(array, TrimmedArray) and array.info]

    def put_written(self, obj: JsonObject) -> None:
        """Take the answer to a write of our own."""
        kind = text(obj, "kind")
        if kind == JOB_KIND:
            self.jobs.put_written(obj)
        elif kind == CRON_JOB_KIND:
            self._cron_jobs.put_written(TrimmedCronJob(obj))
        elif kind == ARRAY_KIND:
            self._arrays.put_written(TrimmedArray(obj))

    async def run(
        self, session: KubeSession, watch_observer: Callable[[str], WatchObserver]
    ) -> None:
        """Keep up to date until cancelled; `watch_observer` gives that of a kind."""
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.name}/leases"
        queues, crons, arrays = (
            collection_path(self.name, kind) for kind in (QUEUES, CRON_JOBS, ARRAYS)
        )
        small: Sequence[tuple[str, ObjectCache, Params, str, Trim]] = (
            (queues, self._queues, {}, "queues", trim_queue),
            (crons, self._cron_jobs, {}, "cron jobs", TrimmedCronJob),
            (arrays, self._arrays, {}, "arrays", TrimmedArray),
            (leases, self._worker_leases, WORKER_LEASES, "workers", trim_lease),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run_jobs(session, watch_observer("jobs")))
            for path, objects, params, kind, trim in small:
                observer = watch_observer(kind)
                group.create_task(
                    run_informer(session, path, objects, params, observer=observer, transform=trim)
                )

    async def _run_jobs(self, session: KubeSession, observer: WatchObserver) -> None:
        path = collection_path(self.name, JOBS)
        await run_informer(
            session,
            path,
            self.jobs,
            observer=_JobWatch(observer, self.changes),
            transform=TrimmedJob,
        )

    def _running_by_pod(self) -> Counter[str]:
        summaries = (entry.summary for entry in self.jobs.newest_first())
        return Counter(summary.worker for summary in summaries if summary.worker)
