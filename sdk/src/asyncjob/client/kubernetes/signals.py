"""Sends signals to jobs. A signal is written once; a lost response is followed by another read.

In whose name a signal is sent the API server says itself: it refuses any other.
"""

from typing import Final

from asyncjob.client import errors
from asyncjob.client.connection import Call
from asyncjob.client.kubernetes.calls import KubernetesCalls
from asyncjob.errors import InvalidError
from asyncjob.free_json import is_same_json
from asyncjob.json_types import Json, JsonObject, as_object, child, text
from asyncjob.lifecycle.phases import FINISHED_PHASES, Phase
from asyncjob.lifecycle.signals import (
    MAX_SIGNALS,
    has_timed_out,
    signal_entry,
    signals_of,
)

MAX_TRIES: Final = 3
"""Writes until a refusal counts; the first of another's signals makes one of no account."""

_SELF_REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_SELF_REVIEW: Final[JsonObject] = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "SelfSubjectReview",
}


async def own_name(api: KubernetesCalls) -> str:
    """Return what the API server calls who asks."""
    found = await api.send(Call("POST", _SELF_REVIEWS, body=_SELF_REVIEW))
    return text(child(child(found, "status"), "userInfo"), "username")


async def send_signal(
    api: KubernetesCalls,
    path: str,
    name: str,
    payload: Json,
    *,
    sent_by: str,
    now: str,
    uid: str | None = None,
) -> JsonObject:
    """Send a signal and return the job; NotFoundError passes through.

    It is for the job of this UID; without one, for the job that is there at first, and not for one
    that has taken its name since. Another write in between does no harm: the API server lets no
    signal be changed or removed. It may refuse the first signal of two that are sent at the same
    time, once.
    """
    refusal: InvalidError | None = None
    for _ in range(MAX_TRIES):
        job = await api.get(path)
        uid = _check_is_same_job(job, uid)
        known = as_object(signals_of(child(job, "spec")).get(name))
        same = text(known, "sentBy") == sent_by and is_same_json(known.get("payload"), payload)
        if known and same:
            return job
        _check_may_come(job, name, known)
        try:
            told = await api.json_patch(path, _operations(job, name, payload, sent_by, now))
        except InvalidError as error:
            refusal = error
        else:
            _check_is_kept(told, name)
            return told
    raise errors.JobStateError(str(refusal)) from refusal


def _check_is_same_job(job: JsonObject, uid: str | None) -> str:
    """Return the job's UID; raises JobStateError if it is not the one that was asked for."""
    found = text(child(job, "metadata"), "uid")
    if uid is not None and found != uid:
        job_id = text(child(job, "metadata"), "name")
        raise errors.JobStateError(
            f"job {job_id} is another job now: the one with UID {uid} is gone, and its name is "
            "taken again"
        )
    return found


def _check_is_kept(job: JsonObject, name: str) -> None:
    """Raise JobStateError if the API server has dropped the signal: an older CRD has none."""
    if name not in signals_of(child(job, "spec")):
        raise errors.JobStateError(
            "not sent: the CRD asyncjobs.asyncjob.dev does not know spec.signals: apply the CRDs "
            "and policies of this release"
        )


def _check_may_come(job: JsonObject, name: str, known: JsonObject) -> None:
    status, job_id = child(job, "status"), text(child(job, "metadata"), "name")
    phase = Phase(text(status, "phase", Phase.QUEUED))
    if known:
        raise errors.JobStateError(
            f"job {job_id} has been sent {name} by {text(known, 'sentBy')}: a signal is never "
            "changed"
        )
    if phase in FINISHED_PHASES:
        raise errors.JobStateError(f"job {job_id} is {phase.value}: it takes no signals")
    if has_timed_out(status, name):
        raise errors.JobStateError(f"job {job_id} no longer waits for {name}: it came too late")
    if len(signals_of(child(job, "spec"))) >= MAX_SIGNALS:
        raise errors.JobStateError(f"job {job_id} has {MAX_SIGNALS} signals, and takes no more")


def _operations(
    job: JsonObject, name: str, payload: Json, sent_by: str, now: str
) -> list[JsonObject]:
    """Return the JSON Patch; a merge-patch would drop the nulls of the payload."""
    entry = signal_entry(payload, sent_by, now)
    first = not signals_of(child(job, "spec"))
    return [
        {"op": "test", "path": "/metadata/uid", "value": child(job, "metadata").get("uid")},
        {"op": "add", "path": "/spec/signals", "value": {name: entry}}
        if first
        else {"op": "add", "path": f"/spec/signals/{name}", "value": entry},
    ]
