"""Evaluates each job that was seen: enqueue it, evaluate it again later, or neither.

Level-triggered: what is due follows from everything in the cache, never from which event arrived.
Nothing here waits or writes: jobs to reconcile go into the work queue, and leave it when nothing is
due for them any more.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from asyncjob.json_types import JsonObject, child, text
from asyncjob.lifecycle.arrays.chunks import ARRAY_TYPE_SUFFIXES
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.cache.adapters import ObjectName
from asyncjob_operator.cache.dependencies import NO_CHILDREN
from asyncjob_operator.cache.job_caches import JobCaches
from asyncjob_operator.cache.jobs import JobAddress
from asyncjob_operator.cache.queue_stats import QueueStatsCollector
from asyncjob_operator.controllers.workqueue import DelayingQueue, WorkQueue
from asyncjob_operator.core.decide import decide
from asyncjob_operator.core.decision import Decision, RedriveRefusal
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DecisionOptions
from asyncjob_operator.core.policies import finished
from asyncjob_operator.core.policies.cancellation import is_past_deadline
from asyncjob_operator.core.policies.finished import is_redrive_requested
from asyncjob_operator.core.snapshot import Observation, Snapshot, observe
from asyncjob_operator.core.workers import AffectedTypes
from asyncjob_operator.telemetry.job_metrics import JobMetrics
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef, Quarantine, object_ref

MAX_EVALUATED_AT_ONCE = 20
"""Jobs evaluated in one go; more are left to the delaying queue, bit by bit.

Evaluating 100,000 jobs of a changed queue in one go blocked the event loop for half a minute, so
that not even the leader's Lease was renewed.
"""


class JobEvaluator:
    """Evaluates jobs against the caches, whenever one of these reports a change.

    A job whose evaluation raises is quarantined: it is evaluated again when it changes, or after a
    pause. What the cache holds of it stays.

    `on_dead_letter` is called with each job that has just become a dead letter, whichever component
    wrote that, and with the message of its status.
    """

    def __init__(
        self,
        caches: JobCaches,
        delaying_queue: DelayingQueue,
        job_queue: WorkQueue,
        *,
        on_dead_letter: Callable[[JobView, str], None],
        options: DecisionOptions,
        now: Callable[[], Now],
        queue_stats: QueueStatsCollector,
        quarantine: Quarantine,
        metrics: JobMetrics,
    ) -> None:
        self._store = caches.store
        self._statuses = caches.statuses
        self._version_times = caches.version_times
        self._dependency_graph = caches.dependency_graph
        self._scheduled_jobs = caches.scheduled_jobs
        self._chunks = caches.chunks
        self._worker_pods = caches.worker_pods
        self._admission_cache = caches.admission_cache
        self._queues = caches.queues
        self._worker_registry = caches.worker_registry
        self._delaying_queue = delaying_queue
        self._job_queue = job_queue
        self._on_dead_letter = on_dead_letter
        self._options = options
        self._now = now
        self._queue_stats = queue_stats
        self._quarantine = quarantine
        self._metrics = metrics
        self._observations: dict[str, Observation] = {}
        self._refused_redrives: dict[str, tuple[int, RedriveRefusal]] = {}
        self._rerun_retry_at: dict[str, float] = {}
        self._worker_pods.add_listener(self._on_pod_change)
        self._worker_registry.add_listener(self._on_types_change)
        self._admission_cache.add_listener(self.evaluate)
        self._queues.add_listener(self._on_queue_change)
        caches.child_arrays.add_news_listener(self._on_array_news)
        caches.child_arrays.add_list_listener(self._on_arrays_listed)

    def on_update(self, obj: JsonObject, *, just_changed: bool) -> None:
        """Store and evaluate a job; `just_changed`: seen as it changed, not found in a list."""
        meta = child(obj, "metadata")
        uid = text(meta, "uid")
        if not self._store.is_new_version(uid, text(meta, "resourceVersion")):
            return
        with self._quarantine.guard(object_ref(ObjectKind.JOB, obj)) as guard:
            job, now = read_job(obj), self._now()
            if not just_changed and self._store.find(uid) is None:
                self._take_for_refused(job, now)
            self._store_job(job, obj, just_changed=just_changed)
            self._evaluate(job, now, just_changed=just_changed)
        if guard.pause is not None:
            self._requeue_quarantined(uid, guard.pause)

    def refresh(self, obj: JsonObject, jitter: float) -> tuple[JobView, Decision]:
        """Store a fresh read of a job that is being reconciled, and decide again from it."""
        job, now = read_job(obj), self._now()
        if job.uid in self._store and self._store.is_new_version(job.uid, job.resource_version):
            self._store_job(job, obj, just_changed=True)
        now = replace(now, jitter=jitter)
        return job, self._decide(job, now, just_changed=True)

    def decide_from_cache(
        self, uid: str, jitter: float
    ) -> tuple[JobView, JsonObject, Decision] | None:
        """Decide about a job that is being reconciled as its last known version is.

        None unless what a change of its phase is written from is at hand in that version.
        """
        job = self._store.get(uid)
        obj = self._statuses.get(job) if job else None
        if job is None or obj is None:
            return None
        now = self._now()
        now = replace(now, jitter=jitter)
        return job, obj, self._decide(job, now, just_changed=False)

    def on_delete_event(self, obj: JsonObject) -> None:
        """Handle a DELETED event, also of a job that could never be read."""
        meta = child(obj, "metadata")
        self.on_delete(text(meta, "uid"))
        self._quarantine.forget(ObjectKind.JOB, text(meta, "namespace"), text(meta, "name"))

    def on_delete(self, uid: str) -> None:
        """Forget a deleted job, and evaluate the jobs that this matters to."""
        known = self._store.find(uid)
        namespace, name = (known.namespace, known.name) if known else ("", uid)
        with self._quarantine.guard(ObjectRef(ObjectKind.JOB, namespace, name)):
            self._forget(uid)
        self._quarantine.forget(ObjectKind.JOB, namespace, name)

    def _forget(self, uid: str) -> None:
        job, known = self._store.get(uid), self._store.find(uid)
        siblings = self._dependency_graph.siblings_status(known) if known else NO_CHILDREN
        duplicates = self._store.first_duplicates(job) if job else ()
        self._store.delete(uid)
        self._scheduled_jobs.on_delete(uid)
        if uid in self._chunks.place_of:
            self._chunks.on_delete(uid)
        self._observations.pop(uid, None)
        self._refused_redrives.pop(uid, None)
        self._rerun_retry_at.pop(uid, None)
        self._statuses.forget(uid)
        self._delaying_queue.forget(uid)
        self._job_queue.discard(uid)
        if job:
            self._admission_cache.remove(job)
            self._evaluate_duplicates(job, duplicates)
        if known:
            self._evaluate_many(self._dependency_graph.on_delete(known, siblings))

    def evaluate(self, uid: str) -> None:
        """Evaluate a known job again."""
        job = self._store.get(uid)
        if job is None:
            self._evaluate_finished(uid)
            return
        with self._quarantine.guard(_job_ref(job)) as guard:
            self._evaluate(job, self._now(), just_changed=False)
        if guard.pause is not None:
            self._requeue_quarantined(uid, guard.pause)

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Evaluate the job after this many seconds, not before, even if it changes; 0: at once."""
        if uid in self._store:
            self._delaying_queue.block_until(uid, self._now().monotonic + seconds)
            self._job_queue.discard(uid)

    def record_refusal(self, uid: str, number: int, why: RedriveRefusal) -> None:
        """Remember that this redrive request was refused, so that one Event says so."""
        self._refused_redrives[uid] = (number, why)

    def delay_rerun(self, uid: str, seconds: float) -> None:
        """Retry the requested rerun after this many seconds; all else goes on."""
        if uid in self._store:
            self._rerun_retry_at[uid] = self._now().monotonic + seconds
            self._delaying_queue.requeue_at(uid, self._rerun_retry_at[uid])

    def seconds_since_heartbeat(self, uid: str) -> float | None:
        """Return the seconds since a running job's last observed heartbeat, None if unknown."""
        observation = self._observations.get(uid)
        return self._now().monotonic - observation.renewed_at if observation else None

    def locate(self, uid: str) -> JobAddress | None:
        """Return namespace, name and known version of a job, None if it is unknown."""
        return self._store.locate(uid)

    def forget_status(self, uid: str) -> None:
        """Have the job read before it is decided about again: its version may be out of date."""
        self._statuses.forget(uid)

    def _store_job(self, job: JobView, obj: JsonObject, *, just_changed: bool) -> None:
        before, known = self._store.get(job.uid), self._store.find(job.uid)
        if just_changed:
            self._metrics.record_change(known, job, self._observations.get(job.uid))
        siblings = self._dependency_graph.siblings_status(job)
        duplicates = self._store.first_duplicates(job)
        self._store.put(job)
        self._statuses.keep(job, obj)
        if job.control.rerun <= job.reruns:
            self._rerun_retry_at.pop(job.uid, None)
        self._evaluate_many(self._dependency_graph.on_update(job, known, siblings))
        self._scheduled_jobs.on_update(job, obj, self._written_by)
        if job.type.endswith(ARRAY_TYPE_SUFFIXES):
            self._chunks.on_update(obj)
        if before and before.phase is not job.phase:
            if job.phase is Phase.DEAD_LETTER and just_changed:
                self._on_dead_letter(job, text(child(obj, "status"), "message"))
            if job.finished:
                self._queue_stats.record_finished((job.namespace, job.queue))
        self._evaluate_duplicates(job, duplicates)

    def _evaluate(self, job: JobView, now: Now, *, just_changed: bool) -> None:
        decision = self._decide(job, now, just_changed=just_changed)
        self._admission_cache.update(
            job, awaits_reservation=decision.awaits_reservation and decision.effect is None
        )
        if decision.effect is None:
            self._job_queue.discard(job.uid)
            self._delaying_queue.requeue_at(job.uid, decision.requeue_at)
            if job.finished:
                self._compact_finished(job)
            return
        if job.finished:
            self._store.track_pending_request(job, self._written_by(job))
        if not self._delaying_queue.is_blocked(job.uid, now.monotonic):
            self._delaying_queue.forget(job.uid)
            self._job_queue.add(job.uid, f"{job.namespace}/{decision.effect.policy}")

    def _requeue_quarantined(self, uid: str, pause: float) -> None:
        """Leave a job alone for the pause it was quarantined for."""
        job = self._store.get(uid)
        if job and job.finished:  # a job that cannot be evaluated must still be removed in time
            self._store.track_pending_request(job, self._written_by(job))
        self.requeue_after(uid, pause)

    def _decide(self, job: JobView, now: Now, *, just_changed: bool) -> Decision:
        queue, dependencies = (
            self._queues.view(job.namespace, job.queue),
            self._dependency_graph.dependencies(job),
        )
        missing_dependency = bool(dependencies.missing) and not job.control.suspend
        type_known = not queue.has_limits or self._worker_registry.is_served(job)
        previous = self._observations.get(job.uid)
        observation = observe(
            previous,
            job,
            queue,
            now,
            just_changed=just_changed,
            dependency_missing=missing_dependency,
            type_known=type_known,
        )
        if job.uid in self._store:
            self._observations[job.uid] = observation
        holder, duplicate = self._worker_pods.holder_status(job), self._store.live_duplicate(job)
        unserved = (
            self._worker_registry.unserved_type(job) if queue.dead_letters_unknown_types else None
        )
        has_reservation = queue.has_limits and self._admission_cache.is_reserved(job)
        snapshot = Snapshot(
            job,
            observation,
            self._options,
            queue,
            holder=holder,
            live_duplicate=duplicate,
            unserved_type=unserved,
            has_reservation=has_reservation,
            type_known=type_known,
            dependencies=dependencies,
            refused_redrive=self._refused_redrives.get(job.uid),
            rerun_retry_at=self._rerun_retry_at.get(job.uid, 0.0),
        )
        return decide(snapshot, now)

    def _take_for_refused(self, job: JobView, now: Now) -> None:
        """Say nothing of a redrive past the deadline that lies in the first list.

        An operator before this one has said it, and each start would say it again.
        """
        if is_redrive_requested(job) and is_past_deadline(job, now):
            self.record_refusal(job.uid, job.control.redrive, RedriveRefusal.PAST_DEADLINE)

    def _is_redrive_void(self, job: JobView) -> bool:
        void = job.control.redrive, RedriveRefusal.PAST_DEADLINE
        return self._refused_redrives.get(job.uid) == void

    def _compact_finished(self, job: JobView) -> None:
        if is_redrive_requested(job) and not self._is_redrive_void(job):
            self._store.track_pending_request(job, self._written_by(job))
        else:
            self._store.compact_finished(job, self._written_by(job))
        self._observations.pop(job.uid, None)

    def _written_by(self, job: JobView) -> float:
        """Return when this version had been written at the latest, in epoch seconds."""
        return self._version_times.written_by(job.resource_version, self._now().wall)

    def _evaluate_finished(self, uid: str) -> None:
        """Enqueue a finished job whose requested rerun may be retried now."""
        known = self._store.find(uid)
        if known and self._now().monotonic >= self._rerun_retry_at.get(uid, math.inf):
            self._job_queue.add(uid, f"{known.namespace}/{finished.RERUN}")

    def _evaluate_many(self, uids: Sequence[str]) -> None:
        """Evaluate these jobs: a few at once, many bit by bit to let others run in between."""
        if len(uids) <= MAX_EVALUATED_AT_ONCE:
            self._evaluate_all(uids)
        else:
            self._delaying_queue.add_all(uids)

    def _evaluate_all(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.evaluate(uid)

    def _evaluate_duplicates(self, job: JobView, previous: tuple[str, ...]) -> None:
        """Evaluate the jobs affected if the first two with a deduplication id have changed.

        All others remain duplicates of a job before them. Once the id is free, a dead letter whose
        redrive was refused because of it may run again.
        """
        now = self._store.first_duplicates(job)
        if now == previous:
            return
        self._evaluate_all([uid for uid in {*previous[:1], *now[:1]} if uid != job.uid])
        if not now:
            self._evaluate_many(
                [uid for uid in self._store.finished_duplicates(job) if uid != job.uid]
            )

    def _on_array_news(self, uid: str, name: ObjectName) -> None:
        self._evaluate_many(self._dependency_graph.on_array_news(uid, name))

    def _on_arrays_listed(self) -> None:
        """Evaluate those that depend on arrays: from now on it is known which do not exist."""
        self._evaluate_many(self._dependency_graph.dependents_on_arrays())

    def _on_pod_change(self, namespace: str, pod_uid: str) -> None:
        self._evaluate_many(self._store.held_by(namespace, pod_uid))

    def _on_types_change(self, queue: tuple[str, str], affected: AffectedTypes) -> None:
        """Evaluate the jobs of types that the queue's workers have begun or ceased to serve."""
        view = self._queues.view(*queue)
        if not (view.has_limits or view.dead_letters_unknown_types):
            return
        if affected.every:
            self._evaluate_many(self._store.in_queue(queue))
            return
        for job_type in affected.types:
            self._evaluate_many(self._store.of_type(queue, job_type))

    def _on_queue_change(self, namespace: str, queue: str) -> None:
        """Evaluate a changed queue's jobs, bit by bit; count the active ones at once.

        If these were counted late, more reservations would be granted than the limits allow.
        """
        for uid in self._store.active_in_queue((namespace, queue)):
            job = self._store.get(uid)
            if job:
                self._admission_cache.update_active(job)
        self._evaluate_many(self._store.in_queue((namespace, queue)))


def _job_ref(job: JobView) -> ObjectRef:
    return ObjectRef(ObjectKind.JOB, job.namespace, job.name, job.resource_version)
