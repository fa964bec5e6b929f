"""Reconciles one AsyncCronJob: read it, decide again, carry out one effect after another.

Runs are reserved in the status before they are created, and created only while the reservation is
certain to be this replica's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from asyncjob.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    ObjectNotFoundError,
    TooLargeError,
    UnknownOutcomeError,
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.job_view import read_job
from asyncjob.lifecycle.phase_change import status_merge_patch
from asyncjob.lifecycle.phases import FINISHED_PHASES
from asyncjob.lifecycle.schedules import CronReason
from asyncjob.names import (
    CRON_JOB_KIND,
    CRON_JOB_UID_LABEL,
    JOBS,
    collection_path,
    cron_job_path,
    cron_job_status_path,
    job_path,
)
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import MAX_REFUSED_BACKOFF, ItemBackoff
from asyncjob_operator.core.events import KubernetesEvent
from asyncjob_operator.core.schedules.decide import drop_runs, late_message
from asyncjob_operator.core.schedules.jobs import (
    ScheduledJob,
    cron_job_uid_of,
    is_job_of_run,
    run_body,
    scheduled_job,
)
from asyncjob_operator.core.schedules.reservation import REQUEST_TIMEOUT_SECONDS, may_create
from asyncjob_operator.core.schedules.snapshot import (
    CancelJobs,
    CreateRuns,
    CronJobDecision,
    CronJobEffect,
    DeleteJobs,
    DropRuns,
    EventToRecord,
    WriteStatus,
)
from asyncjob_operator.core.schedules.view import CronJobView, Run
from asyncjob_operator.kube.clock import monotonic
from asyncjob_operator.telemetry.containment import ObjectKind, ObjectRef
from asyncjob_operator.telemetry.metrics import OperatorMetrics

_REQUEST_PARAMS: Final = {"timeout": f"{REQUEST_TIMEOUT_SECONDS:.0f}s"}
"""The API server itself is to give up a request that nobody waits for any more."""


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """A run that cannot be created, whoever tries."""

    run: Run
    reason: CronReason
    message: str


class RunCreator:
    """`is_allowed` is asked right before each request.

    `on_created` takes each run that there is now.
    """

    def __init__(
        self,
        session: KubeSession,
        is_allowed: Callable[[str], bool],
        on_created: Callable[[str, Run, JsonObject | None], None],
    ) -> None:
        self._session = session
        self._is_allowed = is_allowed
        self._on_created = on_created

    async def create(
        self, cron: CronJobView, obj: JsonObject, runs: tuple[Run, ...]
    ) -> RefusedRun | None:
        """Create in order; return the first that cannot be, or None. Raises what a request does."""
        for run in runs:
            if not self._is_allowed(cron.uid):
                return None
            refused = await self._create(cron, obj, run)
            if refused:
                return refused
        return None

    async def find_existing(self, cron: CronJobView, runs: tuple[Run, ...]) -> bool:
        """Return whether any of the runs exists after all: a creation may have gone unanswered."""
        found = False
        for run in runs:
            try:
                there = await self._session.get(job_path(cron.namespace, run.name))
            except ObjectNotFoundError:
                continue
            if is_job_of_run(there, cron, run):
                self._on_created(cron.uid, run, there)
                found = True
        return found

    async def _create(self, cron: CronJobView, obj: JsonObject, run: Run) -> RefusedRun | None:
        try:
            created = await self._post(cron, run_body(cron, obj, run))
        except AlreadyExistsError:
            return await self._adopt_existing(cron, run)
        except (InvalidError, TooLargeError) as error:
            return RefusedRun(run, CronReason.JOB_REFUSED, str(error))
        self._on_created(cron.uid, run, created)
        return None

    async def _post(self, cron: CronJobView, body: JsonObject) -> JsonObject:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                return await self._session.create(
                    collection_path(cron.namespace, JOBS), body, _REQUEST_PARAMS
                )
        except TimeoutError as error:
            raise UnknownOutcomeError("no answer to the creation of a run in time") from error

    async def _adopt_existing(self, cron: CronJobView, run: Run) -> RefusedRun | None:
        try:
            there = await self._session.get(job_path(cron.namespace, run.name))
        except ObjectNotFoundError:
            # Gone in between: it has been created, and once is enough.
            self._on_created(cron.uid, run, None)
            return None
        if not is_job_of_run(there, cron, run):
            return RefusedRun(run, CronReason.NAME_TAKEN, "another job has its name")
        self._on_created(cron.uid, run, there)
        return None


log = structlog.get_logger()

METRIC_LABEL: Final = "schedule"
EVENT_MIN_INTERVAL: Final = 3600.0
"""The same reason about the same schedule is told again after an hour at the soonest."""

WRITE_REFUSED: Final = "WriteRefused"
"""Reason of the Event about a schedule whose next step the API server refuses."""

CONFLICT_BACKOFF_DIVISOR: Final = 10
"""A schedule that somebody else has changed is looked at sooner than one that failed."""

MAX_READ_BY_NAME: Final = 16
"""Beyond so many a list is cheaper than reading them one by one."""

_UNFINISHED_SELECTOR: Final = ",".join(
    f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES)
)


class CronJobEvaluator(Protocol):
    """Who knows the schedules and decides about them."""

    def locate(self, uid: str) -> CronJobView | None:
        """Return where a schedule is."""

    def refresh(
        self, obj: JsonObject, unfinished: list[ScheduledJob] | None = None
    ) -> tuple[CronJobView, CronJobDecision]:
        """Take a fresh read and decide anew."""

    def has_unknown_active(self, cron: CronJobView) -> bool:
        """Return whether the status names active jobs that are not known here."""

    def unfinished_names(self, cron: CronJobView) -> frozenset[str] | None:
        """Return the names of all jobs that may be unfinished, or None if they are not known."""

    def on_update(self, obj: JsonObject) -> None:
        """Take the answer to a write."""

    def on_delete(self, name: tuple[str, str]) -> None:
        """Take that a schedule is gone."""

    def record_reservation(self, obj: JsonObject, sent_at: float) -> None:
        """Take the answer to a write that made the reservation this replica's own."""

    def record_created(self, uid: str, name: str) -> None:
        """Take that a reserved run has been created."""

    def reserved_at(self, uid: str) -> float | None:
        """Return when this replica sent the write that gave it the reservation."""

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Leave a schedule alone for so long."""


class CronJobReconciler:
    """`leads` is asked again right before each write; `on_job` takes jobs as they come to be."""

    def __init__(
        self,
        session: KubeSession,
        controller: CronJobEvaluator,
        *,
        backoff: ItemBackoff,
        events: EventRecorder,
        metrics: OperatorMetrics,
        leads: Callable[[], bool],
        on_job: Callable[[JsonObject], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._session = session
        self._controller = controller
        self._backoff = backoff
        self._refused_backoff = ItemBackoff(backoff.initial, MAX_REFUSED_BACKOFF)
        self._events = events
        self._metrics = metrics
        self._leads = leads
        self._on_job = on_job
        self._clock = clock
        self._run_creator = RunCreator(session, self._may_create, self._on_created)

    async def reconcile(self, uid: str) -> None:
        """Do what is due for the schedule now, if still anything is."""
        where = self._controller.locate(uid)
        if where is None:
            return
        try:
            obj = await self._read(where)
            if await self._reconcile_object(obj):
                self._reset_backoff(uid)
            else:  # what was known is behind what there is: let the watches catch up
                self._controller.requeue_after(
                    uid, self._backoff.record_failure(uid) / CONFLICT_BACKOFF_DIVISOR
                )
        except ObjectNotFoundError:
            self._reset_backoff(uid)
            self._controller.on_delete((where.namespace, where.name))
        except ConflictError:
            log.debug("schedule changed meanwhile", cron=where.key)
            self._controller.requeue_after(
                uid, self._backoff.record_failure(uid) / CONFLICT_BACKOFF_DIVISOR
            )
        except (InvalidError, ForbiddenError) as error:
            self._on_refused(where, error)
        except ApiError as error:
            pause = self._backoff.record_failure(uid)
            log.warning("schedule failed", cron=where.key, error=str(error), retry_in=pause)
            self._controller.requeue_after(uid, pause)

    def _on_refused(self, where: CronJobView, error: InvalidError | ForbiddenError) -> None:
        """Leave it alone for longer each time; a quota may give way at any moment, a rule not."""
        self._metrics.writes.labels(METRIC_LABEL, "refused").inc()
        pause = self._refused_backoff.record_failure(where.uid)
        if isinstance(error, ForbiddenError):
            pause = min(pause, self._backoff.cap)
        if self._refused_backoff.is_new_error(where.uid, str(error)):
            log.warning("schedule refused", cron=where.key, error=str(error), retry_in=pause)
            self._events.record(_refusal_event(where, error))
        self._controller.requeue_after(where.uid, pause)

    def _reset_backoff(self, uid: str) -> None:
        self._backoff.reset(uid)
        self._refused_backoff.reset(uid)

    def object_ref(self, uid: str) -> ObjectRef:
        """Return the schedule in the version that is known."""
        cron = self._controller.locate(uid)
        if cron is None:
            return ObjectRef(ObjectKind.CRON_JOB, "", uid)
        return ObjectRef(ObjectKind.CRON_JOB, cron.namespace, cron.name, cron.resource_version)

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Leave a schedule alone that makes the operator stumble."""
        self._controller.requeue_after(uid, seconds)

    async def _read(self, where: CronJobView) -> JsonObject:
        obj = await self._session.get(cron_job_path(where.namespace, where.name))
        if text(child(obj, "metadata"), "uid") != where.uid:
            raise ObjectNotFoundError(f"{where.key} is another schedule by now", status=404)
        return obj

    async def _reconcile_object(self, obj: JsonObject) -> bool:
        """Return whether there was anything to do.

        The answer to a write is a fresh read, too: going on with it leaves more of the
        reservation's time for what it is for, and takes what is made off the list at once.
        """
        latest: JsonObject | None = obj
        acted = False
        while latest is not None:
            cron, decision = await self._decide(latest)
            if decision.effect is None:
                return acted
            acted = True
            if not self._leads():
                return acted
            latest = await self._apply(decision.effect, cron, latest)
        return acted

    async def _decide(self, obj: JsonObject) -> tuple[CronJobView, CronJobDecision]:
        cron, decision = self._controller.refresh(obj)
        effect = decision.effect
        if effect and (
            effect.needs_fresh_list
            or (isinstance(effect, WriteStatus) and self._controller.has_unknown_active(cron))
        ):
            return self._controller.refresh(obj, await self._read_unfinished(cron))
        return cron, decision

    async def _read_unfinished(self, cron: CronJobView) -> list[ScheduledJob]:
        """Read the schedule's unfinished jobs; it begins after the schedule was read.

        Each of them stands in the status that was just read, as reserved or as active: a run is
        reserved before it is created, is active before its reservation goes, and leaves there
        only when whoever writes that has seen it end. What this replica knows itself comes on
        top, as a person may redrive one. So a few jobs are read by name, and not a namespace.
        """
        names = self._controller.unfinished_names(cron)
        if names is None or len(names) > MAX_READ_BY_NAME:
            return await self._list_unfinished(cron)
        found = [await self._read_unfinished_child(cron, name) for name in sorted(names)]
        return [one for one in found if one is not None]

    async def _read_unfinished_child(self, cron: CronJobView, name: str) -> ScheduledJob | None:
        try:
            obj = await self._session.get(job_path(cron.namespace, name))
        except ObjectNotFoundError:
            return None
        one = scheduled_job(read_job(obj), obj)
        return one if cron_job_uid_of(obj) == cron.uid and not one.finished else None

    async def _list_unfinished(self, cron: CronJobView) -> list[ScheduledJob]:
        params = {
            "labelSelector": f"{CRON_JOB_UID_LABEL}={cron.uid}",
            "fieldSelector": _UNFINISHED_SELECTOR,
        }
        found = self._session.list(collection_path(cron.namespace, JOBS), params)
        return [scheduled_job(read_job(obj), obj) async for obj in found]

    async def _apply(
        self, effect: CronJobEffect, cron: CronJobView, obj: JsonObject
    ) -> JsonObject | None:
        """Return the schedule as it is now, if there is more to do at once."""
        match effect:
            case WriteStatus():
                answer = await self._write_status(effect, cron)
                return answer if effect.reserves else None
            case CreateRuns():
                return await self._create_runs(effect, cron, obj)
            case DropRuns():
                return await self._drop_late_runs(effect, cron, obj)
            case CancelJobs() | DeleteJobs():
                for one in effect.jobs:
                    await (
                        self._cancel_child if isinstance(effect, CancelJobs) else self._delete_child
                    )(one)
        return None  # to Ask, the reads have answered

    async def _create_runs(
        self, effect: CreateRuns, cron: CronJobView, obj: JsonObject
    ) -> JsonObject:
        refused = await self._run_creator.create(cron, obj, effect.runs)
        if refused is None:
            return obj
        log.warning("run refused", cron=cron.key, run=refused.run.name, why=refused.message)
        message = f"no job {refused.run.name}: {refused.message}"
        return await self._write_status(
            drop_runs(cron, [refused.run], refused.reason, message), cron
        )

    async def _drop_late_runs(
        self, effect: DropRuns, cron: CronJobView, obj: JsonObject
    ) -> JsonObject:
        if await self._run_creator.find_existing(cron, effect.runs):
            return obj
        message = late_message(effect.runs)
        return await self._write_status(
            drop_runs(cron, effect.runs, CronReason.SKIPPED, message), cron
        )

    async def _write_status(self, effect: WriteStatus, cron: CronJobView) -> JsonObject:
        sent_at = self._clock()
        body = status_merge_patch(effect.fields, cron.resource_version)
        answer = await self._session.merge_patch(
            cron_job_status_path(cron.namespace, cron.name), body
        )
        if effect.reserves:
            self._controller.record_reservation(answer, sent_at)
        log.debug("schedule written", cron=cron.key, policy=effect.policy)
        if effect.event:
            self._events.record(_event_of(cron, effect.event))
        self._controller.on_update(answer)
        return answer

    def _may_create(self, uid: str) -> bool:
        return self._leads() and may_create(self._controller.reserved_at(uid), self._clock())

    def _on_created(self, uid: str, run: Run, job: JsonObject | None) -> None:
        self._controller.record_created(uid, run.name)
        self._metrics.cron_runs.labels(_run_kind(run)).inc()
        if job is not None:
            self._on_job(job)

    async def _cancel_child(self, job: ScheduledJob) -> None:
        body: JsonObject = {"metadata": {"uid": job.uid}, "spec": {"cancel": True}}
        try:
            answer = await self._session.merge_patch(job_path(job.namespace, job.name), body)
        except (ConflictError, ObjectNotFoundError):
            return  # another job by now, or none
        self._on_job(answer)

    async def _delete_child(self, job: ScheduledJob) -> None:
        preconditions = {"uid": job.uid, "resourceVersion": job.version}
        body: JsonObject = {"preconditions": preconditions, "propagationPolicy": "Background"}
        if not self._leads():
            return
        try:
            await self._session.delete(job_path(job.namespace, job.name), body)
        except (ConflictError, ObjectNotFoundError):
            return  # changed or gone: the watch tells
        self._metrics.jobs_removed.inc()


def _run_kind(run: Run) -> str:
    if run.trigger is not None:
        return "trigger"
    return "backfill" if run.backfill else "schedule"


def _event_of(cron: CronJobView, told: EventToRecord) -> KubernetesEvent:
    return _cron_job_event(cron, told.reason.value, told.message)


def _refusal_event(cron: CronJobView, error: ApiError) -> KubernetesEvent:
    """Return what people are told while a quota or a rule keeps the schedule from going on."""
    return _cron_job_event(
        cron, WRITE_REFUSED, f"tried again later, because it is refused now: {error}"
    )


def _cron_job_event(cron: CronJobView, reason: str, message: str) -> KubernetesEvent:
    uid = cron.uid
    return KubernetesEvent(
        cron.namespace,
        cron.name,
        uid,
        reason,
        message,
        kind=CRON_JOB_KIND,
        min_interval=EVENT_MIN_INTERVAL,
    )
