"""Evaluates each schedule as it and its jobs are seen, and enqueues those that need a write.

Writes nothing. A list of schedules is compared with what is known now and then, since a watch can
lose a deletion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.phases import Phase
from asyncjob.names import CRON_JOBS, collection_path
from asyncjob_operator.cache.adapters import ObjectName
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
from asyncjob_operator.telemetry.containment import Containment, ObjectKind, ObjectRef, object_ref

MANY_JOBS: Final = 200
MANY_JOBS_DELAY: Final = 1.0
"""A schedule with more than so many jobs is looked at once in so many seconds as they change."""


@dataclass(frozen=True, slots=True)
class ObservedReservation:
    """What this replica knows of a reservation; times are monotonic seconds of its own.

    `reserved_at`: when it sent the write that made the reservation its own, if it did. `created`:
    which of the runs it has created, or found created.
    """

    reserved: ReservedRuns
    observed_at: float
    reserved_at: float | None = None
    created: frozenset[str] = frozenset()


class CronJobController:
    """Views, claims and the agenda; `enqueue` is told of schedules that something is due for."""

    def __init__(
        self,
        identity: str,
        scheduled_jobs: ScheduledJobCache,
        now: Callable[[], Now],
        enqueue: Callable[[str], None],
        *,
        prunes_history: bool = True,
        containment: Containment | None = None,
        dedup_window: float = DAY,
    ) -> None:
        self.containment = containment or Containment(lambda: now().monotonic, lambda _kind: None)
        self.delaying_queue = DelayingQueue()
        self.scheduled_jobs = scheduled_jobs
        scheduled_jobs.on_change = self._on_job_change
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
        """Take a schedule as it was then."""
        meta = child(obj, "metadata")
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        known = self._views.get(uid)
        if known and not is_newer(version, known.resource_version):
            return
        with self.containment.guard(object_ref(ObjectKind.CRON_JOB, obj)) as guard:
            self._store_cron_job(read_cron_job(obj))
            self._evaluate(uid)
        self._requeue_if_set_aside(uid, guard.pause)

    def on_delete(self, name: ObjectName) -> None:
        """Take that there is no such schedule; its jobs are left alone."""
        self.containment.forget(ObjectKind.CRON_JOB, *name)
        uid = self._uids.pop(name, None)
        if uid is not None:
            self._views.pop(uid, None)
            self._reservations.pop(uid, None)
            self._verified_unfinished.pop(uid, None)
            self.scheduled_jobs.remove_cron_job((name[0], uid))
            self.delaying_queue.forget(uid)

    def names_in(self, namespace: str | None) -> Sequence[ObjectName]:
        """Return the names of the known schedules of one namespace, or of all."""
        return [name for name in self._uids if namespace in (None, name[0])]

    def locate(self, uid: str) -> CronJobView | None:
        """Return the view of a schedule."""
        return self._views.get(uid)

    def evaluate(self, uid: str) -> None:
        """Judge a known schedule anew."""
        cron = self._views.get(uid)
        if cron is None:
            return
        one = ObjectRef(ObjectKind.CRON_JOB, cron.namespace, cron.name, cron.resource_version)
        with self.containment.guard(one) as guard:
            self._evaluate(uid)
        self._requeue_if_set_aside(uid, guard.pause)

    def _evaluate(self, uid: str) -> None:
        cron, now = self._views[uid], self._now()
        decision = self._decide(cron, self.scheduled_jobs.jobs_of((cron.namespace, uid)), now)
        if decision.effect is None:
            self.delaying_queue.requeue_at(uid, decision.requeue_at)
        elif not self.delaying_queue.is_blocked(uid, now.monotonic):
            self.delaying_queue.forget(uid)
            self._enqueue(uid)

    def refresh(
        self, obj: JsonObject, unfinished: list[ScheduledJob] | None = None
    ) -> tuple[CronJobView, CronJobDecision]:
        """Take a fresh read and decide anew.

        `unfinished` are the schedule's unfinished jobs by reads that began after that one.
        """
        cron = read_cron_job(obj)
        known = self._views.get(cron.uid)
        if known and is_newer(cron.resource_version, known.resource_version):
            self._store_cron_job(cron)
        children = self.scheduled_jobs.jobs_of((cron.namespace, cron.uid))
        if unfinished is not None:
            if cron.uid in self._views:
                self._verified_unfinished[cron.uid] = frozenset(one.uid for one in unfinished)
            children = (*unfinished, *(one for one in children if one.finished))
        return cron, self._decide(cron, children, self._now())

    def has_unknown_active(self, cron: CronJobView) -> bool:
        """Return whether the status names active jobs that are not known here.

        Then they are gone, or this replica is behind who wrote it and must not take them off.
        """
        known = {one.uid for one in self.scheduled_jobs.jobs_of((cron.namespace, cron.uid))}
        return any(one.uid not in known for one in cron.active)

    def unfinished_names(self, cron: CronJobView) -> frozenset[str] | None:
        """Return the names of all jobs that may be unfinished, or None if they are not known.

        A dead letter may have been redriven since it was seen.
        """
        if cron.active_count > len(cron.active):
            return None
        may_be = [
            one.name
            for one in self.scheduled_jobs.jobs_of((cron.namespace, cron.uid))
            if one.is_run_of(cron) and (not one.finished or one.phase is Phase.DEAD_LETTER)
        ]
        active = [one.name for one in cron.active]
        return frozenset([*active, *(run.name for run in cron.runs), *may_be])

    def record_reservation(self, obj: JsonObject, sent_at: float) -> None:
        """Take the answer to a write, sent then, that made the reservation this replica's own."""
        cron = read_cron_job(obj)
        if cron.reserved and cron.uid in self._views:
            made = self._still_created(cron)
            self._reservations[cron.uid] = ObservedReservation(
                cron.reserved, self._now().monotonic, sent_at, made
            )

    def record_created(self, uid: str, name: str) -> None:
        """Take that a reserved run has been created."""
        claim = self._reservations.get(uid)
        if claim:
            self._reservations[uid] = replace(claim, created=claim.created | {name})

    def reserved_at(self, uid: str) -> float | None:
        """Return when this replica sent the write that gave it the reservation."""
        claim = self._reservations.get(uid)
        return claim.reserved_at if claim else None

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Leave the schedule alone for so long, whatever is seen of it."""
        if uid in self._views:
            self.delaying_queue.block_until(uid, self._now().monotonic + seconds)

    def _requeue_if_set_aside(self, uid: str, seconds: float | None) -> None:
        """Leave a schedule alone that was set aside for so long, if it was."""
        if seconds is not None:
            self.requeue_after(uid, seconds)

    def _on_job_change(self, child_of: CronJobKey) -> None:
        """Look at a schedule when a job of it changes; at one with very many jobs once in a while.

        Each look goes through all jobs of the schedule.
        """
        namespace, uid = child_of
        cron = self._views.get(uid)
        if cron is None or cron.namespace != namespace:
            return
        if self.scheduled_jobs.count(child_of) <= MANY_JOBS:
            self.evaluate(uid)
        else:
            self.delaying_queue.advance(uid, self._now().monotonic + MANY_JOBS_DELAY)

    def _store_cron_job(self, cron: CronJobView) -> None:
        name = (cron.namespace, cron.name)
        before = self._uids.get(name)
        if before is not None and before != cron.uid:
            self.on_delete(name)
        self._uids[name] = cron.uid
        self._views[cron.uid] = cron
        self.scheduled_jobs.add_cron_job((cron.namespace, cron.uid))
        self._observe_reservation(cron)

    def _observe_reservation(self, cron: CronJobView) -> ObservedReservation | None:
        """Return what is known of the reservation as it is now."""
        claim = self._reservations.get(cron.uid)
        if cron.reserved is None:
            self._reservations.pop(cron.uid, None)
            return None
        if claim is None or (claim.reserved.by, claim.reserved.claims) != (
            cron.reserved.by,
            cron.reserved.claims,
        ):
            claim = ObservedReservation(
                cron.reserved, self._now().monotonic, created=self._still_created(cron)
            )
            self._reservations[cron.uid] = claim
        return claim

    def _still_created(self, cron: CronJobView) -> frozenset[str]:
        """Return which reserved runs were known to be made before the reservation changed hands."""
        before = self._reservations.get(cron.uid)
        return (before.created if before else frozenset()) & {run.name for run in cron.runs}

    def _decide(
        self, cron: CronJobView, children: tuple[ScheduledJob, ...], now: Now
    ) -> CronJobDecision:
        claim = self._observe_reservation(cron)
        made = claim.created if claim else frozenset()
        if cron.runs:
            seen = self.scheduled_jobs.names((cron.namespace, cron.uid))
            made |= {run.name for run in cron.runs if not run.backfill and run.name in seen}
        return decide_cron_job(
            CronJobSnapshot(
                cron=cron,
                schedule=schedule_or_problem(cron),
                jobs=tuple(one for one in children if one.is_run_of(cron)),
                identity=self._identity,
                reserved_at=claim.reserved_at if claim else None,
                reservation_observed_at=claim.observed_at if claim else now.monotonic,
                created=made,
                verified_unfinished=self._verified_unfinished.get(cron.uid, frozenset()),
                prunes_history=self._prunes_history,
                dedup_window=self._dedup_window,
            ),
            now,
        )


async def resync_cron_jobs(
    session: KubeSession, namespace: str | None, controller: CronJobController
) -> None:
    """Take all schedules there are, and forget those that are no more; raises what a list raises.

    Who is first seen while the list is read is not in it, and is not forgotten.
    """
    before = set(controller.names_in(namespace))
    found = [obj async for obj in session.list(collection_path(namespace, CRON_JOBS))]
    metas = [child(obj, "metadata") for obj in found]
    present = {(text(meta, "namespace"), text(meta, "name")) for meta in metas}
    for name in before - present:
        controller.on_delete(name)
    controller.containment.retain(ObjectKind.CRON_JOB, namespace, present)
    for obj in found:
        controller.on_update(obj)
