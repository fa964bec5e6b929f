"""What the attempts of one fake cluster have in common, and what each handler is told."""

from collections.abc import Callable
from dataclasses import dataclass

from asyncjob.app import JobInfo, Resources, WorkerApp
from asyncjob.app.job_info import JobParent
from asyncjob.free_json import MAX_STORED_BYTES
from asyncjob.json_types import JsonObject, as_object, child, integer, opt_text, text
from asyncjob.lifecycle.policy import BUILT_IN_POLICY
from asyncjob.lifecycle.view import JobView
from asyncjob.names import PARENT_LABEL, PARENT_NAME_ANNOTATION
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.store import JobStore


@dataclass(frozen=True, slots=True)
class AttemptServices:
    """What all attempts share. `wake` tells that a handler has done something.

    `draw` decides the jitter of retries; `max_bytes` is the most that a result or checkpoint takes.
    """

    app: WorkerApp
    clock: FakeClock
    store: JobStore
    resources: Resources
    wake: Callable[[], object]
    draw: float = 0.5
    max_bytes: int = MAX_STORED_BYTES


def make_job_info(job: JobView, obj: JsonObject) -> JobInfo:
    """Return what the handler is told of the job."""
    spec, status = child(obj, "spec"), child(obj, "status")
    return JobInfo(
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        type=job.type,
        queue=job.queue,
        attempt=job.attempt,
        retries=job.retries,
        max_retries=(job.effective or BUILT_IN_POLICY).max_retries,
        last_checkpoint=status.get("checkpoint"),
        request=as_object(spec.get("request")),
        traceparent=opt_text(spec, "traceparent"),
        priority=integer(spec, "priority"),
        parent=_job_parent(child(obj, "metadata")),
    )


def _job_parent(metadata: JsonObject) -> JobParent | None:
    uid = text(child(metadata, "labels"), PARENT_LABEL)
    name = opt_text(child(metadata, "annotations"), PARENT_NAME_ANNOTATION)
    return JobParent(uid, name) if uid else None
