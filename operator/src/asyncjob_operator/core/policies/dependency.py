"""`spec.dependsOn` that can never be met: a job failed, is missing for too long, or waits in turn.

It is a dead letter at once, though what failed may be redriven: whoever does that redrives this
one, too, and it then waits again.
"""

from typing import Final

from asyncjob.lifecycle.gate import dead_letter
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import (
    ChangePhase,
    DependencyCycle,
    DependencyFailed,
    DependencyMissing,
    PolicyResult,
    Precondition,
    Wait,
)
from asyncjob_operator.core.moment import Now
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.ties import RelatedJob

DEPENDENCY: Final = "dependency"
CYCLE_ENDS_NAMED: Final = 3
"""Of a long cycle so many jobs are named at each end."""


def fail_on_dependency(snapshot: Snapshot, now: Now) -> PolicyResult:
    """Give up a job whose dependencies cannot be met."""
    job, ties = snapshot.job, snapshot.dependencies
    if not ties.states or job.admitted:
        return None
    if ties.cycle:
        message = f"jobs wait for one another: {_cycle_text(ties.cycle)}"
        return _dead_letter(snapshot, message, DependencyCycle(ties.cycle), now)
    if ties.failed_job:
        return _dead_letter(
            snapshot, ties.failed_job.outcome, DependencyFailed(ties.failed_job), now
        )
    return _missing_too_long(snapshot, now)


def _missing_too_long(snapshot: Snapshot, now: Now) -> PolicyResult:
    job, since = snapshot.job, snapshot.observation.missing_dependency_since
    timeout = snapshot.options.missing_dependency_timeout
    if since is None or not timeout:
        return None
    if now.monotonic < since + timeout:
        return Wait(since + timeout)
    name = snapshot.dependencies.missing[0]
    message = f"{name} does not exist; waited {timeout:g} s for jobs that do not exist"
    return _dead_letter(snapshot, message, DependencyMissing(job.namespace, name), now)


def _dead_letter(
    snapshot: Snapshot, message: str, precondition: Precondition, now: Now
) -> ChangePhase:
    move = dead_letter(
        snapshot.job, Reason.DEPENDENCY_FAILED, f"cannot start: {message}", now=now.timestamp
    )
    return ChangePhase(DEPENDENCY, move, precondition)


def _cycle_text(cycle: tuple[RelatedJob, ...]) -> str:
    names = [one.name for one in (*cycle, cycle[0])]
    left_out = len(names) - 2 * CYCLE_ENDS_NAMED
    if left_out > 0:
        names[CYCLE_ENDS_NAMED:-CYCLE_ENDS_NAMED] = [f"({left_out} more)"]
    return " → ".join(names)
