"""Effects as requests: which write carries which decision, each exact on the version decided on."""

from dataclasses import dataclass

from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError
from asyncjob.json_types import JsonObject, child
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.move import StatusFields, status_fields, status_merge_patch
from asyncjob.lifecycle.rerun import is_rerun_of, rerun_manifest
from asyncjob.lifecycle.view import JobView
from asyncjob.names import JOBS, collection_path, job_path, job_status_path
from asyncjob_operator.core.decision import (
    Admit,
    CancelDeleted,
    CascadeCancel,
    ChangePhase,
    CreateRerun,
    UpdateWaitReason,
)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The job as it is after the write; `name_taken` by a job that is no rerun of it."""

    job: JsonObject
    name_taken: bool = False


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


async def _create_rerun(
    session: KubeSession, effect: CreateRerun, job: JobView, obj: JsonObject
) -> WriteResult:
    taken = False
    try:
        await session.create(collection_path(job.namespace, JOBS), rerun_manifest(obj, effect.name))
    except AlreadyExistsError as error:
        taken = not await _is_same_rerun(session, effect, job, obj, error)
    return WriteResult(await _patch_status(session, job, {"reruns": effect.number}), taken)


async def _is_same_rerun(
    session: KubeSession,
    effect: CreateRerun,
    job: JobView,
    obj: JsonObject,
    error: AlreadyExistsError,
) -> bool:
    try:
        there = await session.get(job_path(job.namespace, effect.name))
    except ObjectNotFoundError:
        raise error from None  # gone in between: look again
    return is_rerun_of(there, obj)


async def _patch_status(session: KubeSession, job: JobView, fields: StatusFields) -> JsonObject:
    body = status_merge_patch(fields, job.resource_version)
    return await session.merge_patch(job_status_path(job.namespace, job.name), body)
