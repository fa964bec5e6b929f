"""Pending, Scheduled and Retrying jobs whose time has come are queued.

A job with another gate still closed, whose deduplication id another live job has as well, or whose
queue has limits, is queued without being admitted; what is next then follows from there, since
Scheduled and Retrying lead nowhere else.
"""

from dataclasses import replace
from typing import Final

from asyncjob.lifecycle.gate import promote
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.view import JobView
from asyncjob_operator.core.decision import ChangePhase, PolicyResult, UpdateWaitReason, Wait
from asyncjob_operator.core.gates import ClosedGate, first_closed_gate
from asyncjob_operator.core.gates.dependencies import children_precondition
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot

PROMOTE: Final = "promote"


def promote_pending(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a pending job once no gate that Pending names is closed."""
    closed = first_closed_gate(snapshot, now)
    if closed is None or closed.reason is Reason.NOT_BEFORE:
        return _queue_job(snapshot, now)
    if closed.reason != snapshot.job.reason or _waits_for_others(closed, snapshot.job):
        return UpdateWaitReason(PROMOTE, closed.reason, closed.message)
    return Wait(closed.until) if closed.until is not None else None


def promote_scheduled(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a scheduled job at its `notBefore`."""
    closed = first_closed_gate(snapshot, now)
    if closed and closed.reason is Reason.NOT_BEFORE and closed.until is not None:
        return Wait(closed.until)
    return _queue_job(snapshot, now)


def promote_retrying(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a retrying job once its backoff is over."""
    retry_at = snapshot.observation.retry_at
    if retry_at is not None and now.monotonic < retry_at:
        return Wait(retry_at)
    return _queue_job(snapshot, now)


def _waits_for_others(closed: ClosedGate, job: JobView) -> bool:
    """Return whether the job tells of dependencies other than those it waits for now."""
    return closed.reason is Reason.WAITING_FOR_DEPENDENCY and closed.message != job.pending_message


def _queue_job(snapshot: Snapshot, now: Now) -> ChangePhase:
    move = promote(snapshot.job, now=now.timestamp)
    if first_closed_gate(snapshot, now) or snapshot.live_duplicate or snapshot.queue.has_limits:
        return ChangePhase(PROMOTE, replace(move, fields={**move.fields, "admitted": None}))
    return ChangePhase(PROMOTE, move, children_precondition(snapshot))
