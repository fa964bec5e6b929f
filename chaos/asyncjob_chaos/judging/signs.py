"""What has happened at all: a fault that left no sign has tested nothing.

Signs are read from what others wrote down: the attempts' ends in the history, and the requests in
the API server's audit log.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from asyncjob.json_types import JsonObject, child, integer, items, text
from asyncjob.names import ARRAYS, JOBS


class Sign(StrEnum):
    """Something that a fault is meant to bring about."""

    LEASE_EXPIRED = "a lease expired"
    WORKER_CRASHED = "an attempt ended with its worker's crash"
    RELEASED = "a draining worker gave a job back"
    HANDLER_FAILED = "a handler failed and was retried"
    CLAIM_CONTESTED = "a claim was contested"
    ANSWER_ADOPTED = "a claim whose answer was lost was adopted"
    LEADER_CHANGED = "another operator led"
    WATCH_EXPIRED = "a watch could not go on where it was (410)"
    THROTTLED = "a request was answered with 429"
    UNAUTHORIZED = "a request was answered with 401"
    REFUSED_BY_STORE = "etcd refused a write"
    STORE_DIED = "etcd died"
    FROZEN = "a process stood still"
    WORKER_ENDED = "a worker's process ended"
    OPERATOR_ENDED = "an operator's process ended"
    GATEWAY_ENDED = "a gateway's process ended"
    API_SERVER_ENDED = "the API server's process ended"
    CUT = "a connection was cut"
    DELAYED = "an answer was delayed"
    DISK_FULL = "a worker found its disk full"
    RULES_AWAY = "the API server let pass what its rules forbid"
    TYPE_CHANGED = "the API server served a type again"
    CLOCK_WRONG = "a process had a wrong clock"
    DEAD_LETTER = "a job that kills its worker became a dead letter"
    BURST = "many jobs were accepted at once"
    UPGRADED = "every process was replaced"
    PARKED = "a job was parked"
    WOKEN_BY_TIME = "a job went on after a sleep"
    WOKEN_BY_SIGNAL = "a parked job was woken by a signal"
    WOKEN_BY_CHILDREN = "a parked job was woken by its children"
    SIGNAL_TOO_LATE = "a signal came too late and was refused"
    INTERRUPTED_BETWEEN_STEPS = "an attempt was interrupted after a step"
    STEP_BEGUN_AGAIN = "the body of a step was begun again"
    CHUNK_INTERRUPTED = "a chunk of an array was interrupted"
    ARRAY_TAKEN_OVER = "another operator went on with an array"


OF_MATRIX: Final = (
    Sign.LEASE_EXPIRED,
    Sign.WORKER_CRASHED,
    Sign.RELEASED,
    Sign.HANDLER_FAILED,
    Sign.CLAIM_CONTESTED,
    Sign.ANSWER_ADOPTED,
    Sign.LEADER_CHANGED,
    Sign.WATCH_EXPIRED,
    Sign.PARKED,
    Sign.WOKEN_BY_TIME,
    Sign.WOKEN_BY_SIGNAL,
    Sign.WOKEN_BY_CHILDREN,
    Sign.SIGNAL_TOO_LATE,
    Sign.INTERRUPTED_BETWEEN_STEPS,
    Sign.STEP_BEGUN_AGAIN,
    Sign.CHUNK_INTERRUPTED,
    Sign.ARRAY_TAKEN_OVER,
)
"""What a whole matrix must have seen, in whichever of its cells."""

_ENDS: Final = {
    "LeaseExpired": Sign.LEASE_EXPIRED,
    "WorkerCrashed": Sign.WORKER_CRASHED,
    "Released": Sign.RELEASED,
    "HandlerFailed": Sign.HANDLER_FAILED,
}
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_CONFLICT: Final = 409
_OK: Final = 200


def signs_of_ends(ends: Counter[str]) -> Counter[Sign]:
    """Return what the ends of attempts tell."""
    return Counter({sign: ends[reason] for reason, sign in _ENDS.items() if ends[reason]})


def signs_of_requests(events: Iterable[JsonObject]) -> Counter[Sign]:
    """Return what the API server's audit log tells, in the order in which it was written.

    A claim that was stored and is then sent once more is one whose answer did not come; a claim
    that meets a conflict and was never stored is one that another worker was quicker with.
    """
    signs: Counter[Sign] = Counter()
    stored: set[str] = set()
    lost: set[str] = set()
    for event in events:
        if text(event, "stage") != "ResponseComplete":
            continue
        code = integer(child(event, "responseStatus"), "code")
        claim = _claim(event)
        if not claim:
            continue
        if code == _OK:
            stored.add(claim)
        elif code == _CONFLICT and claim not in stored:
            lost.add(claim)
        elif code == _CONFLICT:
            signs[Sign.ANSWER_ADOPTED] += 1
    # The log of a request may be written after that of one that was sent later.
    signs[Sign.ANSWER_ADOPTED] += len(lost & stored)
    signs[Sign.CLAIM_CONTESTED] = len(lost - stored)
    return +signs


def signs_of_arrays(events: Iterable[JsonObject]) -> Counter[Sign]:
    """Return what the audit log tells of arrays: whose status pods have written in turn."""
    signs: Counter[Sign] = Counter()
    writers: dict[str, str] = {}
    for event in events:
        ref, user = child(event, "objectRef"), child(event, "user")
        if (text(ref, "resource"), text(ref, "subresource")) != (ARRAYS, "status"):
            continue
        if integer(child(event, "responseStatus"), "code") != _OK:
            continue
        name, pod = text(ref, "name"), str(items(child(user, "extra"), _POD_NAME))
        signs[Sign.ARRAY_TAKEN_OVER] += writers.get(name, pod) != pod
        writers[name] = pod
    return +signs


def _claim(event: JsonObject) -> str:
    ref = child(event, "objectRef")
    if (text(ref, "resource"), text(ref, "subresource")) != (JOBS, "status"):
        return ""
    status = child(child(event, "requestObject"), "status")
    return text(status, "claim") if text(status, "phase") == "Running" else ""
