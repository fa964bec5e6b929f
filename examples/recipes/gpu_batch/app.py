"""`model.train` starts a native Job, follows it, and returns when it is complete.

The Job is named after this job's UID. So an attempt that follows a dead one finds the Job that is
there, and no model is trained twice at a time.
"""

import asyncio
from collections.abc import AsyncIterator

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from asyncjob import JobContext, RetryPolicy, WorkerApp
from asyncjob.errors import AlreadyExistsError, ObjectNotFoundError
from asyncjob.json_types import JsonObject
from asyncjob.kube.access import load_access
from asyncjob.kube.session import KubeSession
from asyncjob.names import job_path

app = WorkerApp()

LOOK_SECONDS = 1.0


class Training(BaseModel):
    """Which image to run how, with how many GPUs, and for how long at most."""

    model_config = ConfigDict(extra="forbid")

    image: str
    command: list[str] = Field(min_length=1)
    gpus: int = Field(ge=1, le=64)
    hours: float = Field(default=12, gt=0, le=240)


class TrainingFailedError(Exception):
    """The native Job has failed; its message says why."""


@app.resource
async def cluster() -> AsyncIterator[KubeSession]:
    """Talk to the API server with the worker's own rights."""
    access = await load_access()
    async with KubeSession(access, field_manager="gpu-batch", connections=4) as session:
        yield session


@app.handler("model.train", timeout=10 * 24 * 3600, retry=RetryPolicy(max_retries=1))
async def train(job: JobContext, training: Training, *, cluster: KubeSession) -> str:
    """Have it trained, in a pod that the scheduler finds a place for."""
    jobs = f"/apis/batch/v1/namespaces/{job.info.namespace}/jobs"
    path = f"{jobs}/train-{job.uid}"
    try:
        await cluster.create(jobs, native_job(job, training))
    except AlreadyExistsError:
        job.log.info("found the Job of an earlier attempt")
    try:
        return await _completion(job, cluster, path)
    except TrainingFailedError:
        await _delete(cluster, path)  # the next attempt starts afresh
        raise
    except asyncio.CancelledError:
        if await _is_cancelled(job, cluster):  # and not only this worker that is shut down
            await _delete(cluster, path)
        raise


def native_job(job: JobContext, training: Training) -> JsonObject:
    """Return the Job: one pod, no retries of its own, gone when the AsyncJob is deleted."""
    resources: JsonObject = {"limits": {"nvidia.com/gpu": training.gpus}}
    command: list[JsonValue] = [*training.command]
    container: JsonObject = {
        "name": "train",
        "image": training.image,
        "command": command,
        "resources": resources,
    }
    owner: JsonObject = {
        "apiVersion": "asyncjob.dev/v1alpha1",
        "kind": "AsyncJob",
        "name": job.name,
        "uid": job.uid,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"train-{job.uid}", "ownerReferences": [owner]},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(training.hours * 3600),
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


async def _completion(job: JobContext, cluster: KubeSession, path: str) -> str:
    """Return once the Job is complete; raises TrainingFailedError if it has failed."""
    while True:
        native = await cluster.get(path)
        for condition in _conditions(native):
            if condition.get("status") == "True" and condition.get("type") == "Complete":
                return path.rpartition("/")[2]
            if condition.get("status") == "True" and condition.get("type") == "Failed":
                raise TrainingFailedError(str(condition.get("message")))
        await job.progress(0, "the pod runs" if _has_active_pod(native) else "waiting for a pod")
        await asyncio.sleep(LOOK_SECONDS)


def _conditions(native: JsonObject) -> list[JsonObject]:
    status = native.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _has_active_pod(native: JsonObject) -> bool:
    status = native.get("status")
    return bool(isinstance(status, dict) and status.get("active"))


async def _is_cancelled(job: JobContext, cluster: KubeSession) -> bool:
    spec = (await cluster.get(job_path(job.info.namespace, job.name)))["spec"]
    return isinstance(spec, dict) and spec.get("cancel") is True


async def _delete(cluster: KubeSession, path: str) -> None:
    try:
        await cluster.delete(path, {"propagationPolicy": "Background"})
    except ObjectNotFoundError:
        return
