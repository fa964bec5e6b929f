"""Reconciles one job: read it, decide again, verify preconditions, write once, then report.

Each write is conditional on the version that was decided on.
"""

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
)
from asyncjob.json_types import JsonObject, child, text
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.derived_jobs import is_rerun_of, rerun_manifest
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import StatusFields, status_fields, status_merge_patch
from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from asyncjob_operator.cache.jobs import JobAddress
from asyncjob_operator.controllers.events import EventRecorder
from asyncjob_operator.controllers.job_evaluator import JobEvaluator
from asyncjob_operator.controllers.preconditions import PreconditionChecker
from asyncjob_operator.controllers.workqueue import MAX_REFUSED_BACKOFF, ItemBackoff
from asyncjob_operator.core.decision import (
    Admit,
    AllOf,
    CancelDeleted,
    CascadeCancel,
    ChangePhase,
    ChildrenOver,
    CreateRerun,
    Decision,
    Effect,
    Precondition,
    RefuseRedrive,
    UpdateWaitReason,
)
from asyncjob_operator.core.events import HOUR, EventReason, KubernetesEvent, job_event
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies import finished, recovery
from asyncjob_operator.kube.clock import random_fraction
from asyncjob_operator.telemetry.logs import job_log_context, job_name_log_context
from asyncjob_operator.telemetry.metrics import OperatorMetrics
from asyncjob_operator.telemetry.quarantine import ObjectKind, ObjectRef

log = structlog.get_logger()

IMMEDIATE_CONFLICT_RETRIES: Final = 2
"""Conflicts in a row without a pause: the job was just written, and a fresh read resolves that."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The API server's answer to a write."""

    job: JsonObject
    """The job after the write."""

    name_taken: bool = False
    """The name of the rerun to create belongs to a job that is not this rerun."""


class JobReconciler:
    """Carries out what is due for a job; `leads` is asked again right before each write.

    `on_recovered` is called with namespace and reason of each job taken from a dead worker.
    """

    def __init__(
        self,
        session: KubeSession,
        evaluator: JobEvaluator,
        *,
        preconditions: PreconditionChecker,
        backoff: ItemBackoff,
        events: EventRecorder,
        metrics: OperatorMetrics,
        leads: Callable[[], bool],
        on_recovered: Callable[[str, str], None],
        now: Callable[[], Now],
    ) -> None:
        self._session = session
        self._evaluator = evaluator
        self._on_recovered = on_recovered
        self._preconditions = preconditions
        self._backoff = backoff
        self._refused_backoff = ItemBackoff(backoff.initial, MAX_REFUSED_BACKOFF)
        self._events = events
        self._metrics = metrics
        self._leads = leads
        self._now = now

    async def reconcile(self, key: str) -> None:
        """Do what is due now for the job with this UID, if anything still is."""
        uid = key
        location = self._evaluator.locate(uid)
        if location is None:
            return
        policy = "none"
        try:
            decided = self._decide_from_cache(uid) or await self._decide_live(uid, location)
            if decided is None:
                return
            job, obj, decision = decided
            if decision.effect is None:
                self._reset_backoff(uid)
                return
            policy = decision.effect.policy
            with job_log_context(job, obj):
                await self._apply(decision.effect, job, obj)
        except ObjectNotFoundError:
            self._count(policy, "gone")
            self._reset_backoff(uid)
            self._evaluator.on_delete(uid)
        except ApiError as error:
            with job_name_log_context(location.namespace, location.name):
                self._on_error(location, uid, policy, error)

    def _decide_from_cache(self, uid: str) -> tuple[JobView, JsonObject, Decision] | None:
        """Return a change of phase that the job's last known version calls for, with that version.

        The write takes effect on that version only, so that an old one leads to a conflict. What
        else is due, or due of a job that is not at hand in full, is decided from a live read.
        """
        decided = self._evaluator.decide_from_cache(uid, random_fraction())
        return decided if decided and isinstance(decided[2].effect, ChangePhase) else None

    async def _decide_live(
        self, uid: str, location: JobAddress
    ) -> tuple[JobView, JsonObject, Decision] | None:
        """Read the job and decide again; None if it is gone, even if another has its name."""
        obj = await self._session.get(job_path(location.namespace, location.name))
        if text(child(obj, "metadata"), "uid") != uid:
            self._evaluator.on_delete(uid)
            return None
        job, decision = self._evaluator.refresh(obj, random_fraction())
        return job, obj, decision

    def object_ref(self, key: str) -> ObjectRef:
        """Return the job with this UID, in the known version."""
        location = self._evaluator.locate(key)
        if location is None:
            return ObjectRef(ObjectKind.JOB, "", key)
        return ObjectRef(ObjectKind.JOB, location.namespace, location.name, location.version)

    def requeue_after(self, key: str, seconds: float) -> None:
        """Leave a job whose reconciliation raised alone for this many seconds."""
        self._evaluator.requeue_after(key, seconds)

    async def _apply(self, effect: Effect, job: JobView, obj: JsonObject) -> None:
        precondition = (
            None
            if isinstance(effect, UpdateWaitReason | CreateRerun | CancelDeleted)
            else effect.precondition
        )
        if not await self._preconditions.verify(precondition):
            self._count(effect.policy, "disproved")
            self._evaluator.forget_status(job.uid)
            self._evaluator.requeue_after(job.uid, self._pause_after_no(job.uid, precondition))
            return
        if not self._leads():
            return
        if isinstance(effect, RefuseRedrive):
            self._evaluator.record_refusal(job.uid, effect.number, effect.why)
            self._events.record(job_event(job, EventReason.REDRIVE_REFUSED, effect.message))
            log.warning("control field refused", policy=effect.policy, why=effect.message)
            return
        written = await write_effect(self._session, effect, job, obj, self._now().timestamp)
        self._on_written(effect, job, written)

    def _pause_after_no(self, uid: str, precondition: Precondition | None) -> float:
        """Return how long to leave a job alone whose precondition does not hold.

        Children that are not over are known from then on: nothing may hold up their parent's wake.
        """
        pause = self._backoff.record_failure(uid)
        asked = precondition.preconditions if isinstance(precondition, AllOf) else (precondition,)
        if not any(isinstance(one, ChildrenOver) for one in asked):
            return pause
        return 0.0 if self._backoff.failures(uid) <= IMMEDIATE_CONFLICT_RETRIES else pause

    def _on_written(self, effect: Effect, job: JobView, written: WriteResult) -> None:
        self._count(effect.policy, "done")
        if text(child(written.job, "metadata"), "resourceVersion") == job.resource_version:
            log.warning("write changed nothing", policy=effect.policy)
            self._evaluator.requeue_after(job.uid, self._backoff.cap)
            return
        self._reset_backoff(job.uid)
        self._report(effect, job, written)
        self._evaluator.on_update(written.job, just_changed=True)

    def _report(self, effect: Effect, job: JobView, written: WriteResult) -> None:
        reason = ""
        if isinstance(effect, ChangePhase):
            reason = effect.change.reason.value if effect.change.reason else ""
            log.debug("phase changed", policy=effect.policy, to=effect.change.target.value)
            if effect.policy == recovery.RECOVER:
                self._record_recovery(job, reason)
        if written.name_taken and isinstance(effect, CreateRerun):
            message = f"not rerun: {effect.name} exists and is another job"
            self._events.record(job_event(job, EventReason.RERUN_REFUSED, message))

    def _record_recovery(self, job: JobView, reason: str) -> None:
        self._metrics.jobs_recovered.labels(reason).inc()
        self._on_recovered(job.namespace, reason)
        seconds_silent = self._evaluator.seconds_since_heartbeat(job.uid)
        if seconds_silent is not None:
            self._metrics.recovery_seconds.observe(seconds_silent)

    def _on_error(self, location: JobAddress, uid: str, policy: str, error: ApiError) -> None:
        self._evaluator.forget_status(uid)
        pause = self._backoff.record_failure(uid)
        if isinstance(error, ConflictError):
            self._count(policy, "conflict")
            if self._backoff.failures(uid) <= IMMEDIATE_CONFLICT_RETRIES:
                self._requeue(uid, policy, 0.0)
                return
        elif isinstance(error, InvalidError | ForbiddenError):
            self._count(policy, "refused")
            pause = self._refused_backoff.record_failure(uid)
            if self._refused_backoff.is_new_error(uid, str(error)):
                log.error(
                    "write refused by a rule",
                    uid=uid,
                    policy=policy,
                    rule=str(error),
                    retry_in=pause,
                )
                self._events.record(_refusal_event(location, uid, policy, error))
        else:
            self._count(policy, "error")
            log.warning("write failed", uid=uid, policy=policy, error=str(error), retry_in=pause)
        if policy == recovery.RECOVER:
            self._metrics.recovery_failed.inc()
        self._requeue(uid, policy, pause)

    def _requeue(self, uid: str, policy: str, seconds: float) -> None:
        """Evaluate the job again after `seconds`; a rerun to create holds up nothing else."""
        if policy == finished.RERUN:
            self._evaluator.delay_rerun(uid, min(seconds, self._backoff.cap))
        else:
            self._evaluator.requeue_after(uid, seconds)

    def _reset_backoff(self, uid: str) -> None:
        self._backoff.reset(uid)
        self._refused_backoff.reset(uid)

    def _count(self, policy: str, outcome: str) -> None:
        self._metrics.writes.labels(policy, outcome).inc()


async def write_effect(
    session: KubeSession,
    effect: ChangePhase | Admit | UpdateWaitReason | CreateRerun | CascadeCancel | CancelDeleted,
    job: JobView,
    obj: JsonObject,
    now: str,
) -> WriteResult:
    """Carry out the effect; raises ConflictError if the job has changed since it was read."""
    if isinstance(effect, CreateRerun):
        return await _create_rerun(session, effect, job, obj)
    if isinstance(effect, CascadeCancel):
        return WriteResult(await _patch_spec(session, job, {"cancel": True, "cancelCascade": True}))
    if isinstance(effect, CancelDeleted):
        return WriteResult(await _patch_spec(session, job, {"cancel": True}))
    return WriteResult(await _patch_status(session, job, _status_fields(effect, obj, now)))


def _status_fields(
    effect: ChangePhase | Admit | UpdateWaitReason, obj: JsonObject, now: str
) -> StatusFields:
    match effect:
        case ChangePhase():
            return status_fields(effect.change, child(obj, "status"))
        case Admit():
            return {"admitted": True, "lastUpdateTime": now}
        case UpdateWaitReason():
            reason = effect.reason.value
            return {"reason": reason, "message": effect.message, "lastUpdateTime": now}


async def _patch_spec(session: KubeSession, job: JobView, fields: JsonObject) -> JsonObject:
    body: JsonObject = {"metadata": {"resourceVersion": job.resource_version}, "spec": fields}
    return await session.merge_patch(job_path(job.namespace, job.name), body)


async def _patch_status(session: KubeSession, job: JobView, fields: StatusFields) -> JsonObject:
    body = status_merge_patch(fields, job.resource_version)
    return await session.merge_patch(job_status_path(job.namespace, job.name), body)


async def _create_rerun(
    session: KubeSession, effect: CreateRerun, job: JobView, obj: JsonObject
) -> WriteResult:
    manifest = rerun_manifest(obj, effect.name)
    require_whole(obj, manifest)  # what is not copied, such as a signal, may be as deep as it likes
    name_taken = False
    try:
        await session.create(collection_path(job.namespace, JOBS), manifest)
    except AlreadyExistsError as error:
        name_taken = not await _is_same_rerun(session, effect, job, obj, error)
    return WriteResult(await _patch_status(session, job, {"reruns": effect.number}), name_taken)


async def _is_same_rerun(
    session: KubeSession,
    effect: CreateRerun,
    job: JobView,
    obj: JsonObject,
    error: AlreadyExistsError,
) -> bool:
    try:
        existing = await session.get(job_path(job.namespace, effect.name))
    except ObjectNotFoundError:
        raise error from None  # deleted in between: let the caller retry
    return is_rerun_of(existing, obj)


def _refusal_event(location: JobAddress, uid: str, policy: str, error: ApiError) -> KubernetesEvent:
    """Return the Event about a write that a rule, a missing permission or its depth prevents."""
    if policy == finished.RERUN:
        reason, message = EventReason.RERUN_REFUSED, f"not rerun: {error}"
    else:
        reason, message = EventReason.WRITE_REFUSED, f"refused, and retried later: {error}"
    return KubernetesEvent(
        location.namespace, location.name, uid, reason, message, min_interval=HOUR
    )
