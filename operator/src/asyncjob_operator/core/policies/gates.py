"""What a job waits for before it can be claimed, and the policies that hold, promote and admit it.

A gate (`notBefore`, `suspend`, `dependsOn`) returns why it is closed, or None. Gates are tried in
order; all policies that queue, hold or admit a job ask for the first that is closed. A job in a
queue with limits also needs a reservation.

While another live job has the same deduplication id, a job is not admitted: the other is cancelled
first, by a write that fails if it was admitted meanwhile. That there is none is confirmed by a live
list (see `deduplication`), so that never two are admitted. An
admission is withdrawn by moving the job to Pending, if it was admitted before its queue had a limit
or if no worker of the queue lists its type any more.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import hold, promote, schedule
from asyncjob.lifecycle.phases import Reason
from asyncjob.lifecycle.waits import WaitKind, WaitView
from asyncjob_operator.core.decision import (
    AWAIT_RESERVATION,
    Admit,
    AllOf,
    ChangePhase,
    ChildrenFinished,
    ChildrenOver,
    PolicyResult,
    Precondition,
    UpdateWaitReason,
    Wait,
)
from asyncjob_operator.core.dependencies import DependencyState
from asyncjob_operator.core.now import Now
from asyncjob_operator.core.policies.deduplication import admission_precondition
from asyncjob_operator.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ClosedGate:
    """Why a job may not be claimed yet."""

    reason: Reason
    message: str
    until: float | None = None
    """When a `notBefore` is reached, in monotonic seconds; None: when something changes."""


def not_before_gate(snapshot: Snapshot, now: Now) -> ClosedGate | None:
    """Keep the job until its `notBefore`."""
    not_before = snapshot.job.gates.not_before
    if not_before is None or now.seconds_until(not_before) <= 0:
        return None
    return ClosedGate(Reason.NOT_BEFORE, f"starts at {not_before}", now.recheck_at(not_before))


def suspend_gate(snapshot: Snapshot, _now: Now) -> ClosedGate | None:
    """Keep the job while `suspend` is set."""
    if not snapshot.job.control.suspend:
        return None
    return ClosedGate(Reason.SUSPENDED, "suspended by spec.suspend")


MAX_DEPENDENCIES_NAMED: Final = 3
"""Unmet dependencies that a message names."""


def dependency_gate(snapshot: Snapshot, _now: Now) -> ClosedGate | None:
    """Keep the job until its dependencies are met."""
    unmet = snapshot.dependencies.unmet
    if snapshot.job.admitted or not unmet:
        return None
    return ClosedGate(Reason.WAITING_FOR_DEPENDENCY, _waiting_message(unmet))


def children_precondition(snapshot: Snapshot) -> ChildrenFinished | None:
    """Return what a live read must confirm before the dependency gate counts as open.

    A job and its last child may be seen in another order than they were written.
    """
    states = [(state.job.uid, state) for state in snapshot.dependencies.with_children if state.job]
    if not states:
        return None
    parents = tuple(uid for uid, _ in states)
    must_succeed = tuple(uid for uid, state in states if not state.dependency.any_outcome)
    return ChildrenFinished(snapshot.job.namespace, parents, must_succeed)


def _waiting_message(unmet: tuple[DependencyState, ...]) -> str:
    names = [_dependency_text(state) for state in unmet[:MAX_DEPENDENCIES_NAMED]]
    more = len(unmet) - MAX_DEPENDENCIES_NAMED
    if more > 0:
        return f"waiting for {', '.join(names)} and {more} more"
    return f"waiting for {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"


def _dependency_text(state: DependencyState) -> str:
    name = state.dependency.name
    if state.job is None:
        return f"{name} (does not exist)"
    if state.job.finished and state.open_children:
        return f"children of {name}"
    return name


GATES: Final[tuple[Callable[[Snapshot, Now], ClosedGate | None], ...]] = (
    not_before_gate,
    suspend_gate,
    dependency_gate,
)


def first_closed_gate(snapshot: Snapshot, now: Now) -> ClosedGate | None:
    """Return the first gate that is closed, None if all are open."""
    for gate in GATES:
        closed = gate(snapshot, now)
        if closed:
            return closed
    return None


HOLD: Final = "hold"


def hold_back(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Move a queued job with a closed gate to Scheduled or Pending."""
    job = snapshot.job
    closed = first_closed_gate(snapshot, now)
    if closed is None:
        return None
    if closed.reason is Reason.NOT_BEFORE:
        return ChangePhase(HOLD, schedule(job, now=now.timestamp))
    return ChangePhase(HOLD, hold(job, closed.reason, closed.message, now=now.timestamp))


PROMOTE: Final = "promote"


def promote_pending(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a pending job once no gate but `notBefore` is closed; update its reason until then.

    A parked one when something that it waits for is there or over.
    """
    if snapshot.job.waiting:
        return _wake(snapshot, now)
    closed = first_closed_gate(snapshot, now)
    if closed is None or closed.reason is Reason.NOT_BEFORE:
        return _queue_job(snapshot, now)
    if closed.reason != snapshot.job.reason or _waits_for_others(closed, snapshot.job):
        return UpdateWaitReason(PROMOTE, closed.reason, closed.message)
    return None


def promote_scheduled(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a scheduled job at its `notBefore`, a parked one when something of its waits is over.

    What a later version of a worker waits for, and this one does not know, is left alone.
    """
    if snapshot.job.waiting:
        return _wake(snapshot, now)
    closed = first_closed_gate(snapshot, now)
    if closed and closed.until is not None:
        return Wait(closed.until)
    return _queue_job(snapshot, now)


def promote_retrying(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a retrying job once its backoff is over."""
    retry_at = snapshot.observation.retry_at
    if retry_at is not None and now.monotonic < retry_at:
        return Wait(retry_at)
    return _queue_job(snapshot, now)


def _wake(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Queue a parked job once a wait is over: by a signal, by the end of its children, or by time.

    Whether children are over follows from the cache, which has all that was written before the
    park. What it does not have is read first: it was deleted, or is not seen yet.

    Its time is that of the API server's clock. What is over by time is marked in the same write, so
    that a signal is refused from then on; one that is there has come in time.
    """
    waiting = snapshot.job.waiting
    timed = [one for one in waiting if _ends_by_time(one, snapshot, now)]
    over = tuple(one.key for one in timed if now.server_seconds_until(one.until) <= 0)
    if over or any(one.sent or _are_children_over(one, snapshot) for one in waiting):
        return _queue_job(snapshot, now, waits_over=over)
    unseen = next((one for one in waiting if _has_no_open_child(one, snapshot)), None)
    if unseen is not None:
        absent = snapshot.dependencies.awaited.absent
        to_read = tuple(child for child in unseen.children if child.uid in absent)
        over_first = ChildrenOver(snapshot.job.namespace, to_read)
        return _queue_job(snapshot, now, verified=over_first)
    return Wait(min(map(partial(_recheck_at, now), timed))) if timed else None


UNREAD_SECONDS: Final = 60.0
"""How long after its end a wait counts on a read of its children that cannot be had."""


def _has_no_open_child(wait: WaitView, snapshot: Snapshot) -> bool:
    """Return whether a wait is for children of which none is known to be unfinished."""
    open_uids = snapshot.dependencies.awaited.open
    is_for_children = wait.kind == WaitKind.CHILDREN
    return is_for_children and not any(child.uid in open_uids for child in wait.children)


def _are_children_over(wait: WaitView, snapshot: Snapshot) -> bool:
    """Return whether a wait is for children that are known to have finished, all of them."""
    absent = snapshot.dependencies.awaited.absent
    return _has_no_open_child(wait, snapshot) and not any(
        child.uid in absent for child in wait.children
    )


def _ends_by_time(wait: WaitView, snapshot: Snapshot, now: Now) -> bool:
    """Return whether time ends it; of a kind that this version does not know nothing is said.

    Children that are not known are read first, for a minute: they may have ended in time.
    """
    if wait.kind == WaitKind.SIGNAL:
        return bool(wait.until) and not wait.sent
    if wait.kind == WaitKind.CHILDREN:
        if not wait.until or _are_children_over(wait, snapshot):
            return False
        is_unread = _has_no_open_child(wait, snapshot)
        return not is_unread or now.server_seconds_until(wait.until) <= -UNREAD_SECONDS
    return wait.kind == WaitKind.SLEEP


def _recheck_at(now: Now, wait: WaitView) -> float:
    return now.recheck_at_server_time(wait.until)


def _waits_for_others(closed: ClosedGate, job: JobView) -> bool:
    """Return whether the message of the job names other dependencies than it waits for now."""
    return closed.reason is Reason.WAITING_FOR_DEPENDENCY and closed.message != job.pending_message


def _queue_job(
    snapshot: Snapshot,
    now: Now,
    *,
    waits_over: tuple[str, ...] = (),
    verified: ChildrenOver | None = None,
) -> ChangePhase:
    """Return the change to Queued; `verified` is what has to be confirmed of a parked job's waits.

    Nothing else is then: a job that was parked has started, so its dependencies were met, and it
    has held its deduplication id ever since.
    """
    change = promote(snapshot.job, now=now.timestamp, waits_over=waits_over)
    if first_closed_gate(snapshot, now) or snapshot.live_duplicate or snapshot.queue.has_limits:
        change = replace(change, fields={**change.fields, "admitted": None})
        return ChangePhase(PROMOTE, change, verified)
    return ChangePhase(PROMOTE, change, verified or _admission_precondition(snapshot))


ADMIT: Final = "admit"


def admit(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Set `admitted`, without which a gated job, or one in a limited queue, is not claimed."""
    job, limited = snapshot.job, snapshot.queue.has_limits
    if job.admitted or not (job.gated or limited):
        return None
    if first_closed_gate(snapshot, now) or snapshot.live_duplicate:
        return None
    if limited and not snapshot.has_reservation:
        return AWAIT_RESERVATION if snapshot.type_known else None
    return Admit(ADMIT, _admission_precondition(snapshot))


def _admission_precondition(snapshot: Snapshot) -> Precondition | None:
    """Return what live reads must confirm before the job is admitted."""
    children = children_precondition(snapshot)
    alone = admission_precondition(snapshot.job)
    return AllOf((children, alone)) if children and alone else children or alone


WITHDRAW_UNRESERVED: Final = "withdraw-unreserved"


def withdraw_unreserved(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Withdraw, by way of Pending, an admission without a reservation; the job then awaits one."""
    job = snapshot.job
    if not job.admitted or snapshot.has_reservation or not snapshot.queue.limits.counts_running:
        return None
    message = f"admitted before queue {job.queue} had its limit"
    return ChangePhase(
        WITHDRAW_UNRESERVED, hold(job, Reason.CONCURRENCY_LIMIT, message, now=now.timestamp)
    )


WITHDRAW_UNSERVED: Final = "withdraw-unserved"


def withdraw_unserved(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Withdraw, by way of Pending, the admission of a job whose type no worker lists any more."""
    job, since = snapshot.job, snapshot.observation.unknown_type_since
    if since is None or not job.admitted:
        return None
    due_at = since + snapshot.options.unknown_type_delay
    if now.monotonic < due_at:
        return Wait(due_at)
    message = f"no worker of queue {job.queue} lists type {job.type} any more: it is not admitted"
    counts = snapshot.queue.limits.counts_running
    reason = Reason.CONCURRENCY_LIMIT if counts else Reason.RATE_LIMIT
    return ChangePhase(WITHDRAW_UNSERVED, hold(job, reason, message, now=now.timestamp))
