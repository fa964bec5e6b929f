"""The operator's part: what time and users' wishes make of a job that no worker is busy with.

An ordered chain of rules per phase, as the operator has it; the first that says something counts.
The moves are the SDK's own. That the rules agree with the operator's is held by the contract tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from asyncjob.lifecycle.gate import drop, give_up, hold, promote, redrive, schedule
from asyncjob.lifecycle.move import Fields, Move, render
from asyncjob.lifecycle.phases import Phase, Reason
from asyncjob.lifecycle.policy import DEFAULT_QUEUE_TIMEOUT_SECONDS
from asyncjob.lifecycle.timestamps import from_text
from asyncjob.lifecycle.view import JobView
from asyncjob.testing.clock import FakeClock
from asyncjob.testing.store import Record


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing before this time of the fake clock."""

    until: float


@dataclass(frozen=True, slots=True)
class Rerun:
    """Create the rerun, then acknowledge the wish."""

    number: int


Effect = Fields | Rerun
Verdict = Effect | Wait | None


@dataclass(frozen=True, slots=True)
class Case:
    """All that one decision looks at. `queue_timeout` is what the job's queue says."""

    record: Record
    clock: FakeClock
    queue_timeout: int | None = None

    @property
    def job(self) -> JobView:
        """The job."""
        return self.record.view

    def write(self, move: Move) -> Fields:
        """Return the fields that carry a move."""
        return render(move, self.record.status)

    def reached(self, moment: str | None) -> Wait | None:
        """Return until when to wait for a stored time; None once it is reached."""
        if moment is None:
            return None
        at = self.clock.until(from_text(moment))
        return Wait(at) if at > self.clock.elapsed else None


def decide(case: Case) -> Verdict:
    """Return the effect that is due now, or until when nothing is, or None."""
    waits: list[float] = []
    for rule in _CHAINS[case.job.phase]:
        verdict = rule(case)
        if isinstance(verdict, Wait):
            waits.append(verdict.until)
        elif verdict is not None:
            return verdict
    return Wait(min(waits)) if waits else None


def _cancel(case: Case) -> Verdict:
    if not case.job.wishes.cancel:
        return None
    message, now = "cancelled by spec.cancel", case.clock.text
    return case.write(drop(case.job, Reason.CANCEL_REQUESTED, message, now=now))


def _dismiss(case: Case) -> Verdict:
    job = case.job
    if not job.wishes.cancel:
        return None
    message = f"dismissed; was a dead letter: {job.reason}"
    return case.write(drop(job, Reason.DISMISSED, message, now=case.clock.text))


def _deadline(case: Case) -> Verdict:
    job, not_after = case.job, case.job.gates.not_after
    if not_after is None or job.attempt > 0:
        return None
    if waits := case.reached(not_after):
        return waits
    message = f"notAfter {not_after} passed before the first start"
    return case.write(drop(job, Reason.DEADLINE_EXCEEDED, message, now=case.clock.text))


def _hold(case: Case) -> Verdict:
    job, now = case.job, case.clock.text
    if case.reached(job.gates.not_before):
        return case.write(schedule(job, now=now))
    if job.wishes.suspend:
        return case.write(hold(job, Reason.SUSPENDED, _SUSPENDED, now=now))
    return None


def _admit(case: Case) -> Verdict:
    if not case.job.gated or case.job.admitted:
        return None
    return {"admitted": True, "lastUpdateTime": case.clock.text}


def _queue_timeout(case: Case) -> Verdict:
    job, since = case.job, case.record.claimable_since
    if since is None or job.retries or job.crashes or job.releases:
        return None
    limit = _first(job.queue_timeout_seconds, case.queue_timeout, DEFAULT_QUEUE_TIMEOUT_SECONDS)
    if case.clock.elapsed < since + limit:
        return Wait(since + limit)
    message = f"no worker claimed it within {limit} s"
    return case.write(give_up(job, Reason.QUEUE_TIMEOUT, message, now=case.clock.text))


def _promote_pending(case: Case) -> Verdict:
    return None if case.job.wishes.suspend else _queue(case)


def _promote_scheduled(case: Case) -> Verdict:
    return case.reached(case.job.gates.not_before) or _queue(case)


def _promote_retrying(case: Case) -> Verdict:
    over_at = case.record.since + (case.job.retry_delay_seconds or 0.0)
    return Wait(over_at) if case.clock.elapsed < over_at else _queue(case)


def _queue(case: Case) -> Fields:
    fields = case.write(promote(case.job, now=case.clock.text))
    closed = case.job.wishes.suspend or case.reached(case.job.gates.not_before)
    return {**fields, "admitted": None} if closed else fields


def _redrive(case: Case) -> Verdict:
    job = case.job
    if job.wishes.redrive <= job.redrives:
        return None
    return case.write(redrive(job, now=case.clock.text))


def _rerun(case: Case) -> Verdict:
    number = case.job.wishes.rerun
    return Rerun(number) if number > case.job.reruns else None


def _first(*seconds: int | None) -> int:
    return next(each for each in seconds if each is not None)


_SUSPENDED: Final = "suspended by spec.suspend"

_CHAINS: Final[dict[Phase, tuple[Callable[[Case], Verdict], ...]]] = {
    Phase.QUEUED: (_cancel, _deadline, _hold, _admit, _queue_timeout, _rerun),
    Phase.PENDING: (_cancel, _deadline, _promote_pending, _rerun),
    Phase.SCHEDULED: (_cancel, _deadline, _promote_scheduled, _rerun),
    Phase.RETRYING: (_cancel, _promote_retrying, _rerun),
    Phase.RUNNING: (_rerun,),
    Phase.DEAD_LETTER: (_dismiss, _rerun, _redrive),
    Phase.SUCCEEDED: (_rerun,),
    Phase.CANCELLED: (_rerun,),
}
