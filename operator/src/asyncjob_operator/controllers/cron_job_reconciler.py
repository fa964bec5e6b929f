"""Reconciles one AsyncCronJob: read it, decide again, carry out one effect after another.

Runs are reserved in the status before they are created, and created only while the reservation is
certain to be this replica's.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from asyncjob.deep_json import require_whole
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
from asyncjob_operator.controllers.cron_job_evaluator import CronJobEvaluator
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.workqueue import MAX_REFUSED_BACKOFF, ItemBackoff
from asyncjob_operator.core.events import EventReason, KubernetesEvent
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
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef

log = structlog.get_logger()

METRIC_LABEL: Final = "schedule"
EVENT_MIN_INTERVAL: Final = 3600.0
"""Seconds before an Event with the same reason about the same cron job is posted again."""

CONFLICT_BACKOFF_DIVISOR: Final = 10
"""Backoff after a conflict is this much shorter than after a failure."""

MAX_READ_BY_NAME: Final = 16
"""Jobs of a cron job that are read one by one; more are listed, which is cheaper then."""

_UNFINISHED_SELECTOR: Final = ",".join(
    f"status.phase!={phase.value}" for phase in sorted(FINISHED_PHASES)
)
_REQUEST_PARAMS: Final = {"timeout": f"{REQUEST_TIMEOUT_SECONDS:.0f}s"}
"""Makes the API server itself give up a request whose client has stopped waiting."""


class CronJobReconciler:
    """Carries out what is due for a cron job.

    `leads` is asked again right before each write. `on_job` is called with each job that was
    created, changed or found to exist.
    """

    def __init__(
        self,
        session: KubeSession,
        evaluator: CronJobEvaluator,
        *,
        backoff: ItemBackoff,
        events: EventRecorder,
        metrics: OperatorMetrics,
        leads: Callable[[], bool],
        on_job: Callable[[JsonObject], None],
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._evaluator = evaluator
        self._backoff = backoff
        self._refused_backoff = ItemBackoff(backoff.initial, MAX_REFUSED_BACKOFF)
        self._events = events
        self._metrics = metrics
        self._leads = leads
        self._on_job = on_job
        self._clock = clock
        self._run_creator = RunCreator(session, self._may_create, self._on_created)

    async def reconcile(self, uid: str) -> None:
        """Do what is due now for the cron job with this UID, if anything still is."""
        cron = self._evaluator.locate(uid)
        if cron is None:
            return
        try:
            obj = await self._read(cron)
            if await self._reconcile_object(obj):
                self._reset_backoff(uid)
            else:  # the cache was behind the API server: let the watches catch up
                self._evaluator.requeue_after(
                    uid, self._backoff.record_failure(uid) / CONFLICT_BACKOFF_DIVISOR
                )
        except ObjectNotFoundError:
            self._reset_backoff(uid)
            if self._evaluator.locate(uid) is not None:  # else its name is another's by now
                self._evaluator.on_delete((cron.namespace, cron.name))
        except ConflictError:
            log.debug("cron job changed meanwhile", cron=cron.key)
            self._evaluator.requeue_after(
                uid, self._backoff.record_failure(uid) / CONFLICT_BACKOFF_DIVISOR
            )
        except (InvalidError, ForbiddenError) as error:
            self._on_refused(cron, error)
        except ApiError as error:
            pause = self._backoff.record_failure(uid)
            log.warning(
                "cron job reconcile failed", cron=cron.key, error=str(error), retry_in=pause
            )
            self._evaluator.requeue_after(uid, pause)

    def _on_refused(self, cron: CronJobView, error: InvalidError | ForbiddenError) -> None:
        """Retry later each time; a quota, unlike a rule, may permit the write at any moment."""
        self._metrics.writes.labels(METRIC_LABEL, "refused").inc()
        pause = self._refused_backoff.record_failure(cron.uid)
        if isinstance(error, ForbiddenError):
            pause = min(pause, self._backoff.cap)
        if self._refused_backoff.is_new_error(cron.uid, str(error)):
            log.warning("cron job write refused", cron=cron.key, error=str(error), retry_in=pause)
            self._events.record(_refusal_event(cron, error))
        self._evaluator.requeue_after(cron.uid, pause)

    def _reset_backoff(self, uid: str) -> None:
        self._backoff.reset(uid)
        self._refused_backoff.reset(uid)

    def object_ref(self, uid: str) -> ObjectRef:
        """Return the cron job with this UID, in the known version."""
        cron = self._evaluator.locate(uid)
        if cron is None:
            return ObjectRef(ObjectKind.CRON_JOB, "", uid)
        return ObjectRef(ObjectKind.CRON_JOB, cron.namespace, cron.name, cron.resource_version)

    def requeue_after(self, uid: str, seconds: float) -> None:
        """Leave a cron job whose reconciliation raised alone for this many seconds."""
        self._evaluator.requeue_after(uid, seconds)

    async def _read(self, cron: CronJobView) -> JsonObject:
        obj = await self._session.get(cron_job_path(cron.namespace, cron.name))
        if text(child(obj, "metadata"), "uid") != cron.uid:
            raise ObjectNotFoundError(f"{cron.key} is another cron job by now", status=404)
        return obj

    async def _reconcile_object(self, obj: JsonObject) -> bool:
        """Carry out one effect after another; return whether there was anything to do.

        The answer to a write is a fresh read as well. Going on with it leaves more of the
        reservation's time for creating runs, and removes created runs from the status at once.
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
        cron, decision = self._evaluator.refresh(obj)
        effect = decision.effect
        if effect and (
            effect.needs_fresh_list
            or (isinstance(effect, WriteStatus) and self._evaluator.has_unknown_active(cron))
        ):
            return self._evaluator.refresh(obj, await self._read_unfinished(cron))
        return cron, decision

    async def _read_unfinished(self, cron: CronJobView) -> list[ScheduledJob]:
        """Read the cron job's unfinished jobs, by reads that begin after the cron job was read.

        The status that was just read names each of them, as reserved or as active: a run is
        reserved before it is created, is listed as active before its reservation is removed, and
        is removed there only by a writer that has seen it end. Jobs that only this replica knows of
        are read as well, as a person may redrive one. So a few jobs are read by name, instead of
        listing a namespace.
        """
        names = self._evaluator.unfinished_names(cron)
        if names is None or len(names) > MAX_READ_BY_NAME:
            return await self._list_unfinished(cron)
        found = [await self._read_unfinished_child(cron, name) for name in sorted(names)]
        return [job for job in found if job is not None]

    async def _read_unfinished_child(self, cron: CronJobView, name: str) -> ScheduledJob | None:
        try:
            obj = await self._session.get(job_path(cron.namespace, name))
        except ObjectNotFoundError:
            return None
        job = scheduled_job(read_job(obj), obj)
        return job if cron_job_uid_of(obj) == cron.uid and not job.finished else None

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
        """Carry out an effect; return the cron job as it is now if more may be due at once."""
        match effect:
            case WriteStatus():
                answer = await self._write_status(effect, cron)
                return answer if effect.reserves else None
            case CreateRuns():
                return await self._create_runs(effect, cron, obj)
            case DropRuns():
                return await self._drop_late_runs(effect, cron, obj)
            case CancelJobs():
                for job in effect.jobs:
                    await self._cancel_child(job)
            case DeleteJobs():
                for job in effect.jobs:
                    await self._delete_child(job)
        return None  # VerifyUnfinished needs the reads alone, which `_decide` has done

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
            self._evaluator.record_reservation(answer, sent_at)
        log.debug("cron job status written", cron=cron.key, policy=effect.policy)
        if effect.event:
            self._events.record(_event_of(cron, effect.event))
        self._evaluator.on_update(answer)
        return answer

    def _may_create(self, uid: str) -> bool:
        return self._leads() and may_create(self._evaluator.reserved_at(uid), self._clock())

    def _on_created(self, uid: str, run: Run, job: JsonObject | None) -> None:
        self._evaluator.record_created(uid, run.name)
        self._metrics.cron_runs.labels(_run_kind(run)).inc()
        if job is not None:
            self._on_job(job)

    async def _cancel_child(self, job: ScheduledJob) -> None:
        body: JsonObject = {"metadata": {"uid": job.uid}, "spec": {"cancel": True}}
        try:
            answer = await self._session.merge_patch(job_path(job.namespace, job.name), body)
        except (ConflictError, ObjectNotFoundError):
            return  # it was deleted, or another job has its name now
        self._on_job(answer)

    async def _delete_child(self, job: ScheduledJob) -> None:
        preconditions = {"uid": job.uid, "resourceVersion": job.version}
        body: JsonObject = {"preconditions": preconditions, "propagationPolicy": "Background"}
        if not self._leads():
            return
        try:
            await self._session.delete(job_path(job.namespace, job.name), body)
        except (ConflictError, ObjectNotFoundError):
            return  # changed or deleted: the watch will report that
        self._metrics.jobs_removed.inc()


@dataclass(frozen=True, slots=True)
class RefusedRun:
    """A run that nobody can create."""

    run: Run
    reason: CronReason
    message: str


class RunCreator:
    """Creates the jobs of reserved runs.

    `is_allowed` is asked with the cron job's UID right before each request. `on_created` is called
    with each run that exists now, and with its job unless that is gone already.
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
        """Create the runs in order and return the first that is refused, if any.

        Raises ApiError for any other failure of a request.
        """
        for run in runs:
            if not self._is_allowed(cron.uid):
                return None
            refused = await self._create(cron, obj, run)
            if refused:
                return refused
        return None

    async def find_existing(self, cron: CronJobView, runs: tuple[Run, ...]) -> bool:
        """Return whether any of the runs exists: the answer to its creation may have been lost."""
        found = False
        for run in runs:
            try:
                existing = await self._session.get(job_path(cron.namespace, run.name))
            except ObjectNotFoundError:
                continue
            if is_job_of_run(existing, cron, run):
                self._on_created(cron.uid, run, existing)
                found = True
        return found

    async def _create(self, cron: CronJobView, obj: JsonObject, run: Run) -> RefusedRun | None:
        try:
            require_whole(obj)
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
            existing = await self._session.get(job_path(cron.namespace, run.name))
        except ObjectNotFoundError:
            # Deleted in between: it was created, and must not be created a second time.
            self._on_created(cron.uid, run, None)
            return None
        if not is_job_of_run(existing, cron, run):
            return RefusedRun(run, CronReason.NAME_TAKEN, "another job has its name")
        self._on_created(cron.uid, run, existing)
        return None


def _run_kind(run: Run) -> str:
    if run.trigger is not None:
        return "trigger"
    return "backfill" if run.backfill else "schedule"


def _event_of(cron: CronJobView, event: EventToRecord) -> KubernetesEvent:
    return _cron_job_event(cron, event.reason.value, event.message)


def _refusal_event(cron: CronJobView, error: ApiError) -> KubernetesEvent:
    """Return the Event posted while a quota or a rule refuses the cron job's next write."""
    return _cron_job_event(
        cron, EventReason.WRITE_REFUSED, f"tried again later, because it is refused now: {error}"
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
