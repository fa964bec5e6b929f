"""Effects as requests: which write carries which decision, each exact on the version decided on."""

from dataclasses import dataclass

from asyncjob.errors import AlreadyExistsError, NotFoundError
from asyncjob.json_types import JsonObject, child
from asyncjob.kube import KubeSession
from asyncjob.lifecycle.move import Fields, merge_body, render
from asyncjob.lifecycle.rerun import is_rerun_of, rerun_body
from asyncjob.lifecycle.view import JobView
from asyncjob.names import JOBS, collection, job_path, job_status_path
from asyncjob_operator.core.decision import Abort, Admit, Cascade, Rename, Rerun, Transition


@dataclass(frozen=True, slots=True)
class Written:
    """The job as it is after the write; `name_taken` by a job that is no rerun of it."""

    job: JsonObject
    name_taken: bool = False


async def write(
    session: KubeSession,
    effect: Transition | Admit | Rename | Rerun | Cascade | Abort,
    job: JobView,
    obj: JsonObject,
    now: str,
) -> Written:
    """Carry out the effect; raises ConflictError if the job has changed since it was read."""
    if isinstance(effect, Rerun):
        return await _rerun(session, effect, job, obj)
    if isinstance(effect, Cascade):
        return Written(await _wish(session, job, {"cancel": True, "cancelCascade": True}))
    if isinstance(effect, Abort):
        return Written(await _wish(session, job, {"cancel": True}))
    return Written(await _patch(session, job, _fields(effect, obj, now)))


def _fields(effect: Transition | Admit | Rename, obj: JsonObject, now: str) -> Fields:
    match effect:
        case Transition():
            return render(effect.move, child(obj, "status"))
        case Admit():
            return {"admitted": True, "lastUpdateTime": now}
        case Rename():
            reason = effect.reason.value
            return {"reason": reason, "message": effect.message, "lastUpdateTime": now}


async def _wish(session: KubeSession, job: JobView, wishes: JsonObject) -> JsonObject:
    body: JsonObject = {"metadata": {"resourceVersion": job.resource_version}, "spec": wishes}
    return await session.merge_patch(job_path(job.namespace, job.name), body)


async def _rerun(session: KubeSession, effect: Rerun, job: JobView, obj: JsonObject) -> Written:
    taken = False
    try:
        await session.create(collection(job.namespace, JOBS), rerun_body(obj, effect.name))
    except AlreadyExistsError as error:
        taken = not await _is_there(session, effect, job, obj, error)
    return Written(await _patch(session, job, {"reruns": effect.number}), taken)


async def _is_there(
    session: KubeSession, effect: Rerun, job: JobView, obj: JsonObject, error: AlreadyExistsError
) -> bool:
    try:
        there = await session.get(job_path(job.namespace, effect.name))
    except NotFoundError:
        raise error from None  # gone in between: look again
    return is_rerun_of(there, obj)


async def _patch(session: KubeSession, job: JobView, fields: Fields) -> JsonObject:
    body = merge_body(fields, job.resource_version)
    return await session.merge_patch(job_status_path(job.namespace, job.name), body)
