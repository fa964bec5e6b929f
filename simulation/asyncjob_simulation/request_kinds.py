"""What a request is for: a seed may have those of one kind fail most."""

import re
from enum import StrEnum
from typing import Final

from asyncjob_simulation.apiserver import Call

_JOB_STATUS: Final = re.compile(r"/asyncjobs/[^/]+/status$")


class RequestKind(StrEnum):
    """What a request is for."""

    CLAIM = "claim"
    HEARTBEAT = "heartbeat"
    OUTCOME = "outcome"
    DECISION = "decision"
    """An operator's change of a job."""

    LEASE = "lease"
    """A worker's registration, or the election."""

    CREATION = "creation"
    READ = "read"
    WATCH = "watch"
    OTHER = "other"
    """Queues, cron jobs, deletions."""


def kind_of(call: Call, actor: str) -> RequestKind:
    """Return what the request of a process of this name is for."""
    if call.method == "GET":
        return RequestKind.WATCH if call.is_watch else RequestKind.READ
    if _JOB_STATUS.search(call.path):
        return _of_job(call, actor)
    if "/leases" in call.path:
        return RequestKind.LEASE
    is_creation = call.method == "POST" and call.path.endswith("/asyncjobs")
    return RequestKind.CREATION if is_creation else RequestKind.OTHER


def _of_job(call: Call, actor: str) -> RequestKind:
    if actor.startswith("operator"):
        return RequestKind.DECISION
    if not call.body.startswith(b"["):
        return RequestKind.CLAIM
    return RequestKind.OUTCOME if b'"/status/phase"' in call.body else RequestKind.HEARTBEAT
