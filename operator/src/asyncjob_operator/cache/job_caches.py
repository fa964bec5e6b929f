"""The caches that decisions about jobs are based on, connected to one another.

The composition root gives each part the one that it needs; only the job evaluator
decides from all.
"""

from collections.abc import Callable, Iterable

from asyncjob_operator.cache.child_arrays import ChildArrays
from asyncjob_operator.cache.chunks import ArrayKey, ChunkCache
from asyncjob_operator.cache.dependencies import DependencyGraph
from asyncjob_operator.cache.jobs import JobStore, QueueKey
from asyncjob_operator.cache.queues import AdmissionCache, QueueCache
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.cache.statuses import StatusCache
from asyncjob_operator.cache.versions import WatchPosition
from asyncjob_operator.cache.waiting_arrays import WaitingArrays
from asyncjob_operator.cache.workers import WorkerPodCache, WorkerRegistry
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.retention import FinishedJob
from asyncjob_operator.kube.version_times import VersionTimes


class JobCaches:
    """Caches of jobs, queues and workers. Their listeners are those who evaluate from them.

    `enqueue_admission` is called with each queue that needs a round of admission, `evaluate_later`
    with the UIDs of jobs for which a cycle of dependencies was found, `evaluate_arrays_later` with
    the keys of arrays that wait for what has changed.
    """

    def __init__(
        self,
        now: Callable[[], Now],
        version_times: VersionTimes,
        *,
        enqueue_admission: Callable[[QueueKey], None],
        evaluate_later: Callable[[Iterable[str]], None],
        evaluate_arrays_later: Callable[[Iterable[ArrayKey]], None],
    ) -> None:
        self.store = JobStore()
        self.version_times = version_times
        self.statuses = StatusCache()
        self.watch_position = WatchPosition()
        self.child_arrays = ChildArrays()
        self.dependency_graph = DependencyGraph(
            self.store, evaluate_later, self.child_arrays, WaitingArrays(evaluate_arrays_later)
        )
        self.scheduled_jobs = ScheduledJobCache()
        self.chunks = ChunkCache()
        self.worker_pods = WorkerPodCache(now)
        self.admission_cache = AdmissionCache(now, enqueue_admission)
        self.queues = QueueCache(self.admission_cache)
        self.worker_registry = WorkerRegistry(lambda: now().monotonic, enqueue_admission)

    def is_needed(self, job: FinishedJob) -> bool:
        """Return whether a finished job has to stay: for another job, or until it is counted."""
        return self.chunks.is_chunk(job.uid) or self.dependency_graph.is_needed(job)

    def is_current(self, uid: str) -> bool:
        """Return whether everything written before a job's known version is known as well."""
        address = self.store.locate(uid)
        return address is not None and self.watch_position.has_reached(
            address.namespace, address.version
        )
