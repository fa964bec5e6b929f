"""`spec.dependsOn` that can never be met: a job failed, is missing for too long, or waits in turn.

It is a dead letter at once, though what failed may be redriven: whoever does that redrives this
one, too, and it then waits again.
"""

from typing import Final

from asyncjob.lifecycle.gate import give_up
from asyncjob.lifecycle.phases import Reason
from asyncjob_operator.core.decision import Absent, Ended, Proof, Stuck, Transition, Verdict, Wait
from asyncjob_operator.core.moment import Moment
from asyncjob_operator.core.snapshot import Snapshot
from asyncjob_operator.core.ties import Relative

NAME: Final = "dependency"
ENDS: Final = 3
"""Of a long cycle so many jobs are named at each end."""


def dependency(snapshot: Snapshot, now: Moment) -> Verdict:
    """Give up a job whose dependencies cannot be met."""
    job, ties = snapshot.job, snapshot.ties
    if not ties.needs or job.admitted:
        return None
    if ties.cycle:
        message = f"jobs wait for one another: {_round(ties.cycle)}"
        return _lost(snapshot, message, Stuck(ties.cycle), now)
    if ties.failed:
        return _lost(snapshot, ties.failed.fate, Ended(ties.failed), now)
    return _missing(snapshot, now)


def _missing(snapshot: Snapshot, now: Moment) -> Verdict:
    job, since = snapshot.job, snapshot.seen.lacking_since
    timeout = snapshot.options.missing_dependency_timeout
    if since is None or not timeout:
        return None
    if now.monotonic < since + timeout:
        return Wait(since + timeout)
    name = snapshot.ties.absent[0]
    message = f"{name} does not exist; waited {timeout:g} s for jobs that do not exist"
    return _lost(snapshot, message, Absent(job.namespace, name), now)


def _lost(snapshot: Snapshot, message: str, proof: Proof, now: Moment) -> Transition:
    move = give_up(snapshot.job, Reason.DEPENDENCY_FAILED, f"cannot start: {message}", now=now.text)
    return Transition(NAME, move, proof)


def _round(cycle: tuple[Relative, ...]) -> str:
    names = [one.name for one in (*cycle, cycle[0])]
    left_out = len(names) - 2 * ENDS
    if left_out > 0:
        names[ENDS:-ENDS] = [f"({left_out} more)"]
    return " → ".join(names)
