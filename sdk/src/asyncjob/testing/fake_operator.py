"""The operator's part: what time and the control fields make of a job that no worker runs.

An ordered list of policies per phase, as in the operator; the first that decides counts. The phase
changes are the SDK's own. The contract tests check that the policies agree with the operator's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob.json_types import text
from asyncjob.lifecycle.job_view import JobView
from asyncjob.lifecycle.phase_change import (
    PhaseChange,
    StatusFields,
    cancel_waiting_job,
    dead_letter,
    deadline_message,
    hold,
    promote,
    redrive,
    schedule,
    status_fields,
)
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS, Category
from asyncjob.lifecycle.timestamps import parse_timestamp
from asyncjob.lifecycle.waits import WaitedChild, WaitKind, WaitView
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.dependencies import DependencyCheck, DependencyLookup, check_dependencies
from asyncjob.testing.store import JobRecord


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing before this time of the fake clock."""

    until: float


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Create the rerun, then acknowledge the request."""

    number: int


Effect = StatusFields | RunAgain
Decision = Effect | WaitUntil | None


@dataclass(frozen=True, slots=True)
class DecisionInput:
    """All that one decision looks at. `queue_timeout` is what the job's queue says.

    `is_over` tells whether a child that the job is parked for has finished, `find` how far what it
    depends on is.
    """

    record: JobRecord
    clock: FakeClock
    queue_timeout: int | None
    is_over: Callable[[WaitedChild], bool]
    find: DependencyLookup

    @property
    def dependencies(self) -> DependencyCheck:
        """Whether what the job depends on is met; once it has started, that does not count."""
        job = self.job
        if job.attempt or job.admitted or job.waiting:
            return DependencyCheck()
        return check_dependencies(job.gates.depends_on, self.find)

    @property
    def job(self) -> JobView:
        """The job."""
        return self.record.view

    def to_status_fields(self, change: PhaseChange) -> StatusFields:
        """Return the fields of the status that a change sets."""
        return status_fields(change, self.record.status)

    @property
    def is_past_deadline(self) -> bool:
        """Whether the job's deadline has passed: a dead letter stays one then."""
        return self.job.deadline is not None and self.wait_for_time(self.job.deadline) is None

    def wait_for_time(self, timestamp: str | None) -> WaitUntil | None:
        """Return until when to wait for a stored time; None once it is reached."""
        if timestamp is None:
            return None
        at = self.clock.elapsed_at(parse_timestamp(timestamp))
        return WaitUntil(at) if at > self.clock.elapsed else None


def decide(case: DecisionInput) -> Decision:
    """Return the effect that is due now, or until when nothing is, or None."""
    waits: list[float] = []
    for rule in POLICIES_BY_PHASE[case.job.phase]:
        verdict = rule(case)
        if isinstance(verdict, WaitUntil):
            waits.append(verdict.until)
        elif verdict is not None:
            return verdict
    return WaitUntil(min(waits)) if waits else None


def _cancel(case: DecisionInput) -> Decision:
    if not case.job.control.cancel:
        return None
    message, now = "cancelled by spec.cancel", case.clock.text
    return case.to_status_fields(
        cancel_waiting_job(case.job, Reason.CANCEL_REQUESTED, message, now=now)
    )


def _dismiss(case: DecisionInput) -> Decision:
    job = case.job
    if not job.control.cancel:
        return None
    message = f"dismissed; was a dead letter: {job.reason}"
    return case.to_status_fields(
        cancel_waiting_job(job, Reason.DISMISSED, message, now=case.clock.text)
    )


def _deadline(case: DecisionInput) -> Decision:
    job, deadline = case.job, case.job.deadline
    if deadline is None:
        return None
    if waits := case.wait_for_time(deadline):
        return waits
    return case.to_status_fields(
        cancel_waiting_job(
            job, Reason.DEADLINE_EXCEEDED, deadline_message(job), now=case.clock.text
        )
    )


def _start_deadline(case: DecisionInput) -> Decision:
    job, not_after = case.job, case.job.gates.not_after
    if not_after is None or job.attempt > 0:
        return None
    if waits := case.wait_for_time(not_after):
        return waits
    message = f"notAfter {not_after} passed before the first start"
    return case.to_status_fields(
        cancel_waiting_job(job, Reason.DEADLINE_EXCEEDED, message, now=case.clock.text)
    )


def _fail_on_dependency(case: DecisionInput) -> Decision:
    message, now = case.dependencies.failed, case.clock.text
    if not message:
        return None
    reason, category = Reason.DEPENDENCY_FAILED, Category.DEPENDENCY
    return case.to_status_fields(dead_letter(case.job, reason, category, message, now=now))


def _hold(case: DecisionInput) -> Decision:
    job, now = case.job, case.clock.text
    if case.wait_for_time(job.gates.not_before):
        return case.to_status_fields(schedule(job, now=now))
    if job.control.suspend:
        return case.to_status_fields(hold(job, Reason.SUSPENDED, _SUSPENDED, now=now))
    if waits := case.dependencies.waiting:
        return case.to_status_fields(hold(job, Reason.WAITING_FOR_DEPENDENCY, waits, now=now))
    return None


def _admit(case: DecisionInput) -> Decision:
    if not case.job.gated or case.job.admitted:
        return None
    return {"admitted": True, "lastUpdateTime": case.clock.text}


def _queue_timeout(case: DecisionInput) -> Decision:
    job, since = case.job, case.record.claimable_since
    if since is None or job.retries or job.crashes or job.releases or job.parks:
        return None
    limit = _first_given(
        job.queue_timeout_seconds, case.queue_timeout, DEFAULT_QUEUE_TIMEOUT_SECONDS
    )
    if case.clock.elapsed < since + limit:
        return WaitUntil(since + limit)
    message = f"no worker claimed it within {limit} s"
    return case.to_status_fields(
        dead_letter(job, Reason.QUEUE_TIMEOUT, Category.TIMEOUT, message, now=case.clock.text)
    )


def _promote_pending(case: DecisionInput) -> Decision:
    if case.job.waiting:
        return _wake(case)
    if not case.wait_for_time(case.job.gates.not_before):
        if case.job.control.suspend:
            return _explain(case, Reason.SUSPENDED, _SUSPENDED)
        if waits := case.dependencies.waiting:
            return _explain(case, Reason.WAITING_FOR_DEPENDENCY, waits)
    return _promote(case)


def _explain(case: DecisionInput, reason: Reason, message: str) -> Decision:
    """Tell what a pending job waits for now, if that is not told yet."""
    told = text(case.record.status, "reason"), text(case.record.status, "message")
    if told == (reason, message):
        return None
    return {"reason": reason.value, "message": message, "lastUpdateTime": case.clock.text}


def _promote_scheduled(case: DecisionInput) -> Decision:
    if case.job.waiting:
        return _wake(case)
    return case.wait_for_time(case.job.gates.not_before) or _promote(case)


def _wake(case: DecisionInput) -> Decision:
    waiting = case.job.waiting
    there = [one for one in waiting if one.sent or _are_children_over(case, one)]
    timed = [one for one in waiting if one.until and one not in there]
    over = tuple(one.key for one in timed if case.wait_for_time(one.until) is None)
    if over or there:
        return _promote(case, waits_over=over)
    return case.wait_for_time(min((one.until for one in timed), default=None))


def _are_children_over(case: DecisionInput, wait: WaitView) -> bool:
    return wait.kind == WaitKind.CHILDREN and all(map(case.is_over, wait.children))


def _promote_retrying(case: DecisionInput) -> Decision:
    over_at = case.record.phase_since + (case.job.retry_delay_seconds or 0.0)
    return WaitUntil(over_at) if case.clock.elapsed < over_at else _promote(case)


def _promote(case: DecisionInput, *, waits_over: tuple[str, ...] = ()) -> StatusFields:
    fields = case.to_status_fields(promote(case.job, now=case.clock.text, waits_over=waits_over))
    closed = (
        case.job.control.suspend
        or case.wait_for_time(case.job.gates.not_before)
        or case.dependencies.waiting
    )
    return {**fields, "admitted": None} if closed else fields


def _redrive(case: DecisionInput) -> Decision:
    job = case.job
    if job.control.redrive <= job.redrives or case.is_past_deadline:
        return None
    return case.to_status_fields(redrive(job, now=case.clock.text))


def _rerun(case: DecisionInput) -> Decision:
    number = case.job.control.rerun
    return RunAgain(number) if number > case.job.reruns else None


def _first_given(*seconds: int | None) -> int:
    return next(each for each in seconds if each is not None)


_SUSPENDED: Final = "suspended by spec.suspend"

POLICIES_BY_PHASE: Final[dict[Phase, tuple[Callable[[DecisionInput], Decision], ...]]] = {
    Phase.QUEUED: (
        _cancel,
        _deadline,
        _start_deadline,
        _fail_on_dependency,
        _hold,
        _admit,
        _queue_timeout,
        _rerun,
    ),
    Phase.PENDING: (
        _cancel,
        _deadline,
        _start_deadline,
        _fail_on_dependency,
        _promote_pending,
        _rerun,
    ),
    Phase.SCHEDULED: (_cancel, _deadline, _start_deadline, _promote_scheduled, _rerun),
    Phase.RETRYING: (_cancel, _deadline, _promote_retrying, _rerun),
    Phase.RUNNING: (_rerun,),
    Phase.DEAD_LETTER: (_dismiss, _redrive, _rerun),
    Phase.SUCCEEDED: (_rerun,),
    Phase.CANCELLED: (_rerun,),
}
