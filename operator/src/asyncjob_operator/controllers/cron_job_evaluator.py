"""Evaluates a cron job when it or one of its jobs changes, and enqueues it if a write is due.

Writes nothing. Now and then the known cron jobs are compared with a list, since a watch can lose a
deletion. The view of a cron job leaves out its `jobTemplate`, which may take a megabyte: it is read
live when a run is created.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.errors import ObjectNotFoundError
from asyncjob.json_types import JsonObject, as_object, child, items, text
from asyncjob.kube import KubeSession
from asyncjob.kube.pacing import TimeSlice
from asyncjob.kube.session import METADATA_LIST_TYPE
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, collection_path, cron_job_path
from asyncjob_operator.cache.adapters import CacheAdapter, InformerStore, ObjectName
from asyncjob_operator.cache.jobs import is_newer
from asyncjob_operator.cache.scheduled_jobs import CronJobKey, ScheduledJobCache
from asyncjob_operator.controllers.workqueue import DelayingQueue
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.options import DAY
from asyncjob_operator.core.schedules.decide import decide_cron_job
from asyncjob_operator.core.schedules.jobs import ScheduledJob
from asyncjob_operator.core.schedules.snapshot import (
    CronJobDecision,
    CronJobSnapshot,
    schedule_or_problem,
)
from asyncjob_operator.core.schedules.view import CronJobView, ReservedRuns, read_cron_job
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef, Quarantine, object_ref

MANY_JOBS: Final = 200
MANY_JOBS_DELAY: Final = 1.0
"""A cron job with more than `MANY_JOBS` jobs is evaluated at most once per this many seconds.

Each evaluation goes through all jobs of the cron job. The number is chosen, not measured: it
is above what the default history limits keep.
"""


@dataclass(frozen=True, slots=True)
class ObservedReservation:
    """What this replica knows of a reservation; times are in its own monotonic seconds."""

    reserved: ReservedRuns
    observed_at: float
    """When this replica first saw the reservation as it is now."""

    reserved_at: float | None = None
    """When it sent the write that made the reservation its own, if it did."""

    created: frozenset[str] = frozenset()
    """Names of the runs that it has created, or found created."""


class CronJobEvaluator:
    """Caches cron jobs and evaluates them; `enqueue` is called with each that needs a write."""

    def __init__(
        self,
        identity: str,
        scheduled_jobs: ScheduledJobCache,
        now: Callable[[], Now],
        enqueue: Callable[[str], None],
        *,
        delaying_queue: DelayingQueue,
        quarantine: Quarantine,
        prunes_history: bool = True,
        dedup_window: float = DAY,
    ) -> None:
        self._quarantine = quarantine
        self._delaying_queue = delaying_queue
        self._scheduled_jobs = scheduled_jobs
        scheduled_jobs.add_listener(self._on_job_change)
        self._identity = identity
        self._now = now
        self._enqueue = enqueue
        self._prunes_history = prunes_history
        self._dedup_window = dedup_window
        self._views: dict[str, CronJobView] = {}
        self._uids: dict[ObjectName, str] = {}
        self._reservations: dict[str, ObservedReservation] = {}
        self._verified_unfinished: dict[str, frozenset[str]] = {}

    def on_update(self, obj: JsonObject) -> None:
        """Store and evaluate a cron job, unless a newer version is known."""
        meta = child(obj, "metadata")
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        known = self._views.get(uid)
        if known and not is_newer(version, known.resource_version):
            return
        with self._quarantine.guard(object_ref(ObjectKind.CRON_JOB, obj)) as guard:
            self._store_cron_job(read_cron_job(obj))
            self._evaluate(uid)
        self._requeue_if_quarantined(uid, guard.pause)

    def on_delete(self, name: ObjectName, version: str = "") -> None:
        """Forget a cron job that was deleted at this version; its jobs are left alone.

        A newer cron job of the same name is kept.
        """
        known = self._views.get(self._uids.get(name, ""))
        if known and version and is_newer(known.resource_version, version):
            return
        self._quarantine.forget(ObjectKind.CRON_JOB, *name)
        uid = self._uids.pop(name, None)
        if uid is not None:
            self._views.pop(uid, None)
            self._reservations.pop(uid, None)
            self._verified_unfinished.pop(uid, None)
            self._scheduled_jobs.remove_cron_job((name[0], uid))
            self._delaying_queue.forget(uid)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known cron jobs of one namespace, or of all."""
        return [name for name in self._uids if namespace in (None, name[0])]

    def locate(self, uid: str) -> CronJobView | None:
        """Return the known view of a cron job, None if it is unknown."""
        return self._views.get(uid)

    def evaluate(self, uid: str) -> None:
        """Evaluate a known cron job again."""
        cron = self._views.get(uid)
        if cron is None:
            return
        ref = ObjectRef(ObjectKind.CRON_JOB, cron.namespace, cron.name, cron.resource_version)
        with self._quarantine.guard(ref) as guard:
            self._evaluate(uid)
        self._requeue_if_quarantined(uid, guard.pause)

    def _evaluate(self, uid: str) -> None:
        cron, now = self._views[uid], self._now()
        decision = self._decide(cron, self._scheduled_jobs.jobs_of((cron.namespace, uid)), now)
        if decision.effect is None:
            self._delaying_queue.requeue_at(uid, decision.requeue_at)
        elif not self._delaying_queue.is_blocked(uid, now.monotonic):
            self._delaying_queue.forget(uid)
            self._enqueue(uid)

    def refresh(
        self, obj: JsonObject, unfinished: list[ScheduledJob] | None = None
    ) -> tuple[CronJobView, CronJobDecision]:
        """Store a fresh read and decide again from it.

        `unfinished` are the cron job's unfinished jobs, by reads that began after that one.
        """
        cron = read_cron_job(obj)
        known = self._views.get(cron.uid)
        if known and is_newer(cron.resource_version, known.resource_version):
            self._store_cron_job(cron)
        children = self._scheduled_jobs.jobs_of((cron.namespace, cron.uid))
        if unfinished is not None:
            if cron.uid in self._views:
                self._verified_unfinished[cron.uid] = frozenset(job.uid for job in unfinished)
            children = (*unfinished, *(job for job in children if job.finished))
        return cron, self._decide(cron, children, self._now())

    def has_unknown_active(self, cron: CronJobView) -> bool:
        """Return whether the status names active jobs that are not known here.

        Such jobs are gone, or this replica's cache is behind the status and must not remove them.
        """
        known = {job.uid for job in self._scheduled_jobs.jobs_of((cron.namespace, cron.uid))}
        return any(job.uid not in known for job in cron.active)

    def unfinished_names(self, cron: CronJobView) -> frozenset[str] | None:
        """Return the names of all jobs that may be unfinished, None if they are not known.

        A dead letter may have been redriven since it was seen.
        """
        if cron.active_count > len(cron.active):
            return None
        unfinished = [
            job.name
            for job in self._scheduled_jobs.jobs_of((cron.namespace, cron.uid))
            if job.is_run_of(cron) and (not job.finished or job.phase is Phase.DEAD_LETTER)
        ]
        active = [job.name for job in cron.active]
        return frozenset([*active, *(run.name for run in cron.runs), *unfinished])

    def record_reservation(self, obj: JsonObject, sent_at: float) -> None:
        """Store the answer to a write, sent at this time, that took or renewed the reservation."""
        cron = read_cron_job(obj)
        if cron.reserved and cron.uid in self._views:
            created = self._still_created(cron)
            self._reservations[cron.uid] = ObservedReservation(
                cron.reserved, self._now().monotonic, sent_at, created
            )

    def record_created(self, uid: str, name: str) -> None:
        """Record that a reserved run has been created."""
        observed = self._reservations.get(uid)
        if observed:
            self._reservations[uid] = replace(observed, created=observed.created | {name})

    def reserved_at(self, uid: str) -> float | None:
        """Return when this replica sent the write that gave it the reservation, if it did."""
        observed = self._reservations.get(uid)
        return observed.reserved_at if observed else None

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Leave the cron job alone for this many seconds, even if it changes."""
        if uid in self._views:
            self._delaying_queue.block_until(uid, self._now().monotonic + seconds)

    def _requeue_if_quarantined(self, uid: str, seconds: float | None) -> None:
        """Leave a cron job alone for the pause it was quarantined for, if it was."""
        if seconds is not None:
            self.requeue_after(uid, seconds)

    def _on_job_change(self, key: CronJobKey) -> None:
        """Evaluate a cron job when a job of it changes; one with many jobs only once in a while."""
        namespace, uid = key
        cron = self._views.get(uid)
        if cron is None or cron.namespace != namespace:
            return
        if self._scheduled_jobs.count(key) <= MANY_JOBS:
            self.evaluate(uid)
        else:
            self._delaying_queue.advance(uid, self._now().monotonic + MANY_JOBS_DELAY)

    def _store_cron_job(self, cron: CronJobView) -> None:
        name = (cron.namespace, cron.name)
        previous_uid = self._uids.get(name)
        if previous_uid is not None and previous_uid != cron.uid:
            self.on_delete(name)
        self._uids[name] = cron.uid
        self._views[cron.uid] = cron
        self._scheduled_jobs.add_cron_job((cron.namespace, cron.uid))
        self._observe_reservation(cron)

    def _observe_reservation(self, cron: CronJobView) -> ObservedReservation | None:
        """Return what is known of the current reservation, and remember when it was first seen."""
        observed = self._reservations.get(cron.uid)
        if cron.reserved is None:
            self._reservations.pop(cron.uid, None)
            return None
        if observed is None or (observed.reserved.by, observed.reserved.claims) != (
            cron.reserved.by,
            cron.reserved.claims,
        ):
            observed = ObservedReservation(
                cron.reserved, self._now().monotonic, created=self._still_created(cron)
            )
            self._reservations[cron.uid] = observed
        return observed

    def _still_created(self, cron: CronJobView) -> frozenset[str]:
        """Return which reserved runs were known to exist before the reservation changed hands."""
        previous = self._reservations.get(cron.uid)
        return (previous.created if previous else frozenset()) & {run.name for run in cron.runs}

    def _decide(
        self, cron: CronJobView, children: tuple[ScheduledJob, ...], now: Now
    ) -> CronJobDecision:
        observed = self._observe_reservation(cron)
        created = observed.created if observed else frozenset()
        if cron.runs:
            known_names = self._scheduled_jobs.names((cron.namespace, cron.uid))
            created |= {
                run.name for run in cron.runs if not run.backfill and run.name in known_names
            }
        return decide_cron_job(
            CronJobSnapshot(
                cron=cron,
                schedule=schedule_or_problem(cron),
                jobs=tuple(job for job in children if job.is_run_of(cron)),
                identity=self._identity,
                reserved_at=observed.reserved_at if observed else None,
                reservation_observed_at=observed.observed_at if observed else now.monotonic,
                created=created,
                verified_unfinished=self._verified_unfinished.get(cron.uid, frozenset()),
                prunes_history=self._prunes_history,
                dedup_window=self._dedup_window,
            ),
            now,
        )


class CronJobCacheAdapter(CacheAdapter):
    """AsyncCronJobs."""

    kind = ObjectKind.CRON_JOB

    def __init__(self, evaluator: CronJobEvaluator) -> None:
        self._evaluator = evaluator

    def on_update(self, obj: JsonObject) -> None:
        """Store a cron job."""
        self._evaluator.on_update(obj)

    def on_delete(self, name: ObjectName, version: str) -> None:
        """Forget a deleted cron job."""
        self._evaluator.on_delete(name, version)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known cron jobs."""
        return self._evaluator.names_in(namespace)


class CronJobStore(InformerStore):
    """The cron jobs of one namespace, or of all."""

    def __init__(
        self, evaluator: CronJobEvaluator, namespace: str | None, quarantine: Quarantine
    ) -> None:
        adapter = CronJobCacheAdapter(evaluator)
        super().__init__(adapter, namespace, quarantine)

    def _on_update(self, obj: JsonObject) -> None:
        """Store a cron job; the evaluator itself quarantines one whose storing raises."""
        self._adapter.on_update(obj)


async def resync_cron_jobs(
    session: KubeSession,
    namespace: str | None,
    evaluator: CronJobEvaluator,
    quarantine: Quarantine,
) -> int:
    """Read new and changed cron jobs, forget deleted ones, and return how many there were.

    The list has metadata only; each cron job that differs is read live. One that is first seen
    while the list is read may not be in it, and is kept. Raises ApiError if a request fails.
    """
    before = set(evaluator.names_in(namespace))
    before |= quarantine.quarantined_names(ObjectKind.CRON_JOB, namespace)
    listed, repaired, version, turns = set[ObjectName](), 0, "", TimeSlice()
    path = collection_path(namespace, CRON_JOBS)
    async for page in session.pages(path, accept=METADATA_LIST_TYPE):
        version = text(child(page, "metadata"), "resourceVersion")
        for item in items(page, "items"):
            obj = as_object(item)
            meta = child(obj, "metadata")
            listed.add((text(meta, "namespace"), text(meta, "name")))
            repaired += await _repair_listed(session, obj, evaluator, quarantine)
            await turns.yield_if_due()
    known = set(evaluator.names_in(namespace))
    for name in before - listed:
        evaluator.on_delete(name, version)
    return repaired + len(known.difference(evaluator.names_in(namespace)))


async def _repair_listed(
    session: KubeSession, obj: JsonObject, evaluator: CronJobEvaluator, quarantine: Quarantine
) -> bool:
    """Read a listed cron job if it is newer than the known view and is not quarantined."""
    meta = child(obj, "metadata")
    uid, version = text(meta, "uid"), text(meta, "resourceVersion")
    known = evaluator.locate(uid)
    if known and not is_newer(version, known.resource_version):
        return False
    if quarantine.is_quarantined(object_ref(ObjectKind.CRON_JOB, obj)):
        return False
    try:
        live = await session.get(cron_job_path(text(meta, "namespace"), text(meta, "name")))
    except ObjectNotFoundError:
        return False
    evaluator.on_update(live)
    return evaluator.locate(uid) is not known
