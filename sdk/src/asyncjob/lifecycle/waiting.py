"""Why a job waits, derived when it is read: storing it would cost a write per job.

The job's own status comes first, then what its AsyncQueue says.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from asyncjob.json_types import Json, JsonObject, as_object, child, flag, items, opt_integer, text
from asyncjob.lifecycle.job_view import JobView, read_job
from asyncjob.lifecycle.phases import Phase, Reason

_NO_QUEUE: JsonObject = {}


@dataclass(frozen=True, slots=True)
class WaitReason:
    """What a job waits for: a reason where there is a word for it, and a sentence for people."""

    reason: str
    message: str


def explain_wait(job: JsonObject, queue: JsonObject = _NO_QUEUE) -> WaitReason | None:
    """Return why a job waits, None for one that runs or has finished.

    `job` and `queue` are AsyncJob and AsyncQueue as the API server returns them; a queue without
    such an object is given as an empty one. Raises ValueError on a phase unknown to this version.
    """
    view, message = read_job(job), text(child(job, "status"), "message")
    match view.phase:
        case Phase.QUEUED:
            return _explain_queued(view, queue)
        case Phase.PENDING | Phase.SCHEDULED:
            return WaitReason(view.reason, message or f"it is {view.phase.value}")
        case Phase.RETRYING:
            due = f"its next attempt is due at {view.next_attempt_time}"
            return WaitReason(view.reason, f"{due}; {message}" if message else due)
        case _:
            return None


def _explain_queued(job: JobView, queue: JsonObject) -> WaitReason:
    spec, status = child(queue, "spec"), child(queue, "status")
    if job.control.cancel:
        return WaitReason(Reason.CANCEL_REQUESTED, "it is about to be cancelled")
    if flag(spec, "paused"):
        return WaitReason(Reason.QUEUE_PAUSED, f"queue {job.queue} is paused")
    if job.admitted or not _is_limited(spec):
        return WaitReason("", _worker_wait_message(job, status))
    return _limit_wait_reason(job, spec, status)


def _is_limited(spec: JsonObject) -> bool:
    return any(name in spec for name in ("maxConcurrency", "maxConcurrencyPerKey", "rateLimit"))


def _worker_wait_message(job: JobView, status: JsonObject) -> str:
    if job.gated and not job.admitted:
        return "the operator has not admitted it yet"
    if opt_integer(status, "workers") == 0:
        return f"no live worker serves queue {job.queue}"
    return f"it waits for a free slot of a worker of queue {job.queue} that handles {job.type}"


def _limit_wait_reason(job: JobView, spec: JsonObject, status: JsonObject) -> WaitReason:
    """Return which limit of the queue is reached."""
    reservations = [as_object(item) for item in items(status, "reservations")]
    key, where = job.gates.concurrency_key, f"queue {job.queue}"
    limit, per_key = opt_integer(spec, "maxConcurrency"), opt_integer(spec, "maxConcurrencyPerKey")
    same = sum(text(one, "key") == key for one in reservations)
    if limit is not None and len(reservations) >= limit:
        message = f"{where} has {len(reservations)} of {limit} reservations"
        return WaitReason(Reason.CONCURRENCY_LIMIT, message)
    if per_key is not None and key and same >= per_key:
        message = f"concurrency key {key} has {same} of {per_key} reservations in {where}"
        return WaitReason(Reason.CONCURRENCY_LIMIT, message)
    if "rateLimit" in spec and not job.resumed:
        return WaitReason(
            Reason.RATE_LIMIT, f"{where} starts {_rate_text(child(spec, 'rateLimit'))}"
        )
    return WaitReason("", f"{where} is about to admit it, or its workers have no free slot")


def _rate_text(rate: Mapping[str, Json]) -> str:
    period = opt_integer(rate, "periodSeconds") or 1
    return f"{opt_integer(rate, 'count')} jobs in {period} s at most"
