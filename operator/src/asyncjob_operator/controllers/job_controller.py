"""Evaluates each job as it is seen: enqueue it, evaluate it again later, or neither.

Level-triggered: what is due follows from all that is known, never from which event came. Nothing
here waits or writes; a listener enqueues and dequeues the jobs.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.cache.dependencies import NO_CHILDREN, DependencyGraph
from asyncjob_operator.cache.jobs import JobAddress, JobStore
from asyncjob_operator.cache.queue_stats import QueueStatsCollector
from asyncjob_operator.cache.queues import AdmissionCache, QueueCache
from asyncjob_operator.cache.scheduled_jobs import ScheduledJobCache
from asyncjob_operator.cache.versions import WatchPosition
from asyncjob_operator.cache.workers import WorkerPodCache, WorkerRegistry
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.decision import Decision
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions, QueueView
from asyncjob_operator.core.policies import finished
from asyncjob_operator.core.policies.finished import is_redrive_requested
from asyncjob_operator.core.snapshot import Observation, Snapshot, observe
from asyncjob_operator.core.workers import AffectedTypes
from asyncjob_operator.telemetry.containment import Containment, ObjectKind, ObjectRef, object_ref
from asyncjob_operator.telemetry.job_metrics import JobMetrics

MAX_EVALUATED_AT_ONCE = 20
"""So many jobs are looked at without letting others take their turn."""


class EvaluationListener(Protocol):
    """Who acts on what the observer finds."""

    def enqueue(self, uid: str, lane: str) -> None:
        """Take that something is to be done about the job; lanes take turns."""

    def dequeue(self, uid: str) -> None:
        """Take that nothing is to be done about the job any more."""

    def enqueue_admission(self, queue: tuple[str, str]) -> None:
        """Take that somebody may get a place in a queue with limits."""

    def on_dead_letter(self, job: JobView, message: str) -> None:
        """Take that the job has just become a dead letter, whoever wrote that."""


class JobController:
    """The store, the sightings and the agenda under one roof.

    A job that makes it fail, whatever it holds, is set aside: it is looked at again when it
    changes, or after a pause. All that is known of it by then stays.
    """

    def __init__(
        self,
        options: DecisionOptions,
        now: Callable[[], Now],
        listener: EvaluationListener,
        metrics: JobMetrics | None = None,
        containment: Containment | None = None,
    ) -> None:
        self.containment = containment or Containment(lambda: now().monotonic, lambda _kind: None)
        self.store = JobStore()
        self.watch_position = WatchPosition()
        self.delaying_queue = DelayingQueue()
        self.dependency_graph = DependencyGraph(self.store, self.delaying_queue.add_all)
        self.scheduled_jobs = ScheduledJobCache()
        self.worker_pods = WorkerPodCache(lambda: now().monotonic, self._on_pod_change)
        self.admission_cache = AdmissionCache(now, listener.enqueue_admission, self.evaluate)
        self.queues = QueueCache(self._on_queue_change, self.admission_cache)
        self.worker_registry = WorkerRegistry(
            lambda: now().monotonic, self._on_types_change, listener.enqueue_admission
        )
        self.queue_stats = QueueStatsCollector(
            self.store, self.queues, self.worker_registry, now, self.containment
        )
        self._options = options
        self._now = now
        self._listener = listener
        self._metrics = metrics
        self._observations: dict[str, Observation] = {}
        self._refused_redrives: dict[str, int] = {}
        self._rerun_retry_at: dict[str, float] = {}

    def on_update(self, obj: JsonObject, *, live: bool) -> None:
        """Take a job as it was then; `live`: seen as it changed, not found in a list."""
        meta = child(obj, "metadata")
        uid = text(meta, "uid")
        if not self.store.is_new_version(uid, text(meta, "resourceVersion")):
            return
        with self.containment.guard(object_ref(ObjectKind.JOB, obj)) as guard:
            job = read_job(obj)
            self._store_job(job, obj, live=live)
            self._evaluate(job, self._now(), live=live)
        self._requeue_if_set_aside(uid, guard.pause)

    def refresh(self, obj: JsonObject, jitter: float) -> tuple[JobView, Decision]:
        """Take a fresh read of a job that is to be acted on, and decide anew."""
        job, now = read_job(obj), self._now()
        if job.uid in self.store and self.store.is_new_version(job.uid, job.resource_version):
            self._store_job(job, obj, live=True)
        now = Now(now.monotonic, now.wall, jitter)
        return job, self._decide(job, now, live=True)

    def on_delete_event(self, obj: JsonObject) -> None:
        """Take that the job is gone, as the watch tells, were it never understood."""
        meta = child(obj, "metadata")
        self.on_delete(text(meta, "uid"))
        self.containment.forget(ObjectKind.JOB, text(meta, "namespace"), text(meta, "name"))

    def on_delete(self, uid: str) -> None:
        """Take that the job is gone."""
        known = self.store.find(uid)
        one = known or ObjectRef(ObjectKind.JOB, "", uid)
        with self.containment.guard(ObjectRef(ObjectKind.JOB, one.namespace, one.name)):
            self._forget(uid)
        self.containment.forget(ObjectKind.JOB, one.namespace, one.name)

    def _forget(self, uid: str) -> None:
        job, known = self.store.get(uid), self.store.find(uid)
        family = self.dependency_graph.siblings_status(known) if known else NO_CHILDREN
        contenders = self.store.first_duplicates(job) if job else ()
        self.store.delete(uid)
        self.scheduled_jobs.on_delete(uid)
        self._observations.pop(uid, None)
        self._refused_redrives.pop(uid, None)
        self._rerun_retry_at.pop(uid, None)
        self.delaying_queue.forget(uid)
        self._listener.dequeue(uid)
        if job:
            self.admission_cache.remove(job)
            self._evaluate_duplicates(job, contenders)
        if known:
            self._evaluate_many(self.dependency_graph.on_delete(known, family))

    def evaluate(self, uid: str) -> None:
        """Judge a known job anew."""
        job = self.store.get(uid)
        if job is None:
            self._evaluate_finished(uid)
            return
        with self.containment.guard(_job_ref(job)) as guard:
            self._evaluate(job, self._now(), live=False)
        self._requeue_if_set_aside(uid, guard.pause)

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Leave the job alone for so long, whatever is seen of it."""
        if uid in self.store:
            self.delaying_queue.block_until(uid, self._now().monotonic + seconds)
            self._listener.dequeue(uid)

    def record_refusal(self, uid: str, number: int) -> None:
        """Remember that a wish was refused and said so; it is not told again."""
        self._refused_redrives[uid] = number

    def delay_rerun(self, uid: str, seconds: float) -> None:
        """Leave the rerun that somebody wants of the job alone for so long, and nothing else."""
        if uid in self.store:
            self._rerun_retry_at[uid] = self._now().monotonic + seconds
            self.delaying_queue.requeue_at(uid, self._rerun_retry_at[uid])

    def seconds_since_heartbeat(self, uid: str) -> float | None:
        """Return the seconds since the last heartbeat that was seen of a running job."""
        seen = self._observations.get(uid)
        return self._now().monotonic - seen.renewed_at if seen else None

    def locate(self, uid: str) -> JobAddress | None:
        """Return where a job is."""
        return self.store.locate(uid)

    def is_current(self, uid: str) -> bool:
        """Return whether all that was written before a job's known version is known, too."""
        where = self.store.locate(uid)
        return where is not None and self.watch_position.has_reached(where.namespace, where.version)

    def queue_view(self, job: JobView) -> QueueView:
        """Return the view of the job's queue."""
        return self.queues.view(job.namespace, job.queue)

    def _store_job(self, job: JobView, obj: JsonObject, *, live: bool) -> None:
        before, known = self.store.get(job.uid), self.store.find(job.uid)
        if live and self._metrics:
            self._metrics.record_change(known, job, self._observations.get(job.uid))
        family, contenders = (
            self.dependency_graph.siblings_status(job),
            self.store.first_duplicates(job),
        )
        self.store.put(job)
        if job.control.rerun <= job.reruns:
            self._rerun_retry_at.pop(job.uid, None)
        self._evaluate_many(self.dependency_graph.on_update(job, known, family))
        self.scheduled_jobs.on_update(job, obj, self._now().wall)
        if before and before.phase is not job.phase:
            if job.phase is Phase.DEAD_LETTER and live:
                self._listener.on_dead_letter(job, text(child(obj, "status"), "message"))
            if job.finished:
                self.queue_stats.record_finished((job.namespace, job.queue))
        self._evaluate_duplicates(job, contenders)

    def _evaluate(self, job: JobView, now: Now, *, live: bool) -> None:
        decision = self._decide(job, now, live=live)
        self.admission_cache.update(
            job, awaits_reservation=decision.awaits_reservation and decision.effect is None
        )
        if decision.effect is None:
            self._listener.dequeue(job.uid)
            self.delaying_queue.requeue_at(job.uid, decision.requeue_at)
            if job.finished:
                self._retire(job)
            return
        if job.finished:
            self.store.keep_requested(job, now.wall)
        if not self.delaying_queue.is_blocked(job.uid, now.monotonic):
            self.delaying_queue.forget(job.uid)
            self._listener.enqueue(job.uid, f"{job.namespace}/{decision.effect.policy}")

    def _requeue_if_set_aside(self, uid: str, seconds: float | None) -> None:
        """Leave a job alone that was set aside for so long, if it was."""
        if seconds is None:
            return
        job = self.store.get(uid)
        if job and job.finished:  # retention goes on whatever else it makes the operator fail at
            self.store.keep_requested(job, self._now().wall)
        self.requeue_after(uid, seconds)

    def _decide(self, job: JobView, now: Now, *, live: bool) -> Decision:
        queue, ties = self.queue_view(job), self.dependency_graph.dependencies(job)
        lacks = bool(ties.missing) and not job.control.suspend
        known = not queue.has_limits or self.worker_registry.is_served(job)
        before = self._observations.get(job.uid)
        seen = observe(
            before, job, queue, now, live=live, dependency_missing=lacks, type_known=known
        )
        if job.uid in self.store:
            self._observations[job.uid] = seen
        holder, rival = self.worker_pods.holder_status(job), self.store.live_duplicate(job)
        missing = (
            self.worker_registry.unserved_type(job) if queue.dead_letters_unknown_types else None
        )
        placed = queue.has_limits and self.admission_cache.is_reserved(job)
        snapshot = Snapshot(
            job,
            seen,
            self._options,
            queue,
            holder,
            rival,
            missing,
            placed,
            known,
            ties,
            refused_redrive=self._refused_redrives.get(job.uid, 0),
            rerun_retry_at=self._rerun_retry_at.get(job.uid, 0.0),
        )
        return decide(snapshot, now)

    def _retire(self, job: JobView) -> None:
        if is_redrive_requested(job):
            self.store.keep_requested(job, self._now().wall)
        else:
            self.store.retire(job, self._now().wall)
        self._observations.pop(job.uid, None)

    def _evaluate_finished(self, uid: str) -> None:
        """Have a finished job run again as somebody wants, once that was left alone long enough."""
        known = self.store.find(uid)
        if known and self._now().monotonic >= self._rerun_retry_at.get(uid, math.inf):
            self._listener.enqueue(uid, f"{known.namespace}/{finished.RERUN}")

    def _evaluate_many(self, uids: Sequence[str]) -> None:
        """Look at these jobs; at many bit by bit, so that others have their turn in between."""
        if len(uids) <= MAX_EVALUATED_AT_ONCE:
            self._evaluate_all(uids)
        else:
            self.delaying_queue.add_all(uids)

    def _evaluate_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.evaluate(uid)

    def _evaluate_duplicates(self, job: JobView, previous: tuple[str, ...]) -> None:
        """Look at those for whom it matters that the first two with an id are not who they were.

        All others are duplicates of a job before them, as they were. Once the id is free, a dead
        letter whose redrive was refused for it may run again.
        """
        now = self.store.first_duplicates(job)
        if now == previous:
            return
        self._evaluate_all([uid for uid in {*previous[:1], *now[:1]} if uid != job.uid])
        if not now:
            self._evaluate_many(
                [uid for uid in self.store.finished_duplicates(job) if uid != job.uid]
            )

    def _on_pod_change(self, namespace: str, pod_uid: str) -> None:
        self._evaluate_many(self.store.held_by(namespace, pod_uid))

    def _on_types_change(self, queue: tuple[str, str], affected: AffectedTypes) -> None:
        """Look at the jobs of types that workers of the queue know from now on, or no longer do."""
        view = self.queues.view(*queue)
        if not (view.has_limits or view.dead_letters_unknown_types):
            return
        if affected.every:
            self._evaluate_many(self.store.in_queue(queue))
            return
        for job_type in affected.types:
            self._evaluate_many(self.store.of_type(queue, job_type))

    def _on_queue_change(self, namespace: str, queue: str) -> None:
        """Count at once who runs, or places would be given twice; all else may come bit by bit."""
        for uid in self.store.active_in_queue((namespace, queue)):
            job = self.store.get(uid)
            if job:
                self.admission_cache.update_active(job)
        self._evaluate_many(self.store.in_queue((namespace, queue)))


def _job_ref(job: JobView) -> ObjectRef:
    return ObjectRef(ObjectKind.JOB, job.namespace, job.name, job.resource_version)
