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
from asyncjob_operator.core.decision import Rename, Transition, Verdict, Wait
from asyncjob_operator.core.gates import Closed, first_closed
from asyncjob_operator.core.gates.dependencies import childless
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot

NAME: Final = "promote"


def promote_pending(snapshot: Snapshot, now: Moment) -> Verdict:
    """Queue a pending job once no gate that Pending names is closed."""
    closed = first_closed(snapshot, now)
    if closed is None or closed.reason is Reason.NOT_BEFORE:
        return _queue(snapshot, now)
    if closed.reason != snapshot.job.reason or _says_otherwise(closed, snapshot.job):
        return Rename(NAME, closed.reason, closed.message)
    return Wait(closed.until) if closed.until is not None else None


def promote_scheduled(snapshot: Snapshot, now: Moment) -> Verdict:
    """Queue a scheduled job at its `notBefore`."""
    closed = first_closed(snapshot, now)
    if closed and closed.reason is Reason.NOT_BEFORE and closed.until is not None:
        return Wait(closed.until)
    return _queue(snapshot, now)


def promote_retrying(snapshot: Snapshot, now: Moment) -> Verdict:
    """Queue a retrying job once its backoff is over."""
    retry_at = snapshot.seen.retry_at
    if retry_at is not None and now.monotonic < retry_at:
        return Wait(retry_at)
    return _queue(snapshot, now)


def _says_otherwise(closed: Closed, job: JobView) -> bool:
    """Return whether the job tells of dependencies other than those it waits for now."""
    return closed.reason is Reason.WAITING_FOR_DEPENDENCY and closed.message != job.waits_for


def _queue(snapshot: Snapshot, now: Moment) -> Transition:
    move = promote(snapshot.job, now=now.text)
    if first_closed(snapshot, now) or snapshot.rival or snapshot.queue.limited:
        return Transition(NAME, replace(move, fields={**move.fields, "admitted": None}))
    return Transition(NAME, move, childless(snapshot))
