"""Which finished jobs of a schedule go: the oldest beyond its two limits.

The guard against running a time twice is in the schedule's status, not in its jobs, so these limits
go below the floors that retention knows, but for one: a run with a key that somebody may ask for
again stays as long as any other job with a key.
"""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.cron.child import Child
from asyncjob_operator.core.cron.decision import Remove, Verdict, Wait
from asyncjob_operator.core.cron.snapshot import CronSnapshot, look_at
from asyncjob_operator.core.moment import Moment

NAME: Final = "history"
CHUNK: Final = 50


def history(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Remove finished jobs beyond the limits, a few at a time."""
    if not snapshot.keeps_history:
        return None
    cron = snapshot.cron
    reserved = {run.name for run in cron.runs}
    finished = [
        one
        for one in snapshot.children
        if one.finished and not one.deleting and not one.wished and one.name not in reserved
    ]
    succeeded = [one for one in finished if one.phase is Phase.SUCCEEDED]
    failed = [one for one in finished if one.phase is not Phase.SUCCEEDED]
    beyond = _oldest(succeeded, cron.keep_succeeded) + _oldest(failed, cron.keep_failed)
    gone = [one for one in beyond if _goes_at(one, snapshot) <= now.wall]
    if gone:
        return Remove(NAME, tuple(gone[:CHUNK]))
    return _wait([_goes_at(one, snapshot) for one in beyond], now)


def _goes_at(one: Child, snapshot: CronSnapshot) -> float:
    return one.completed + (snapshot.long_memory if one.long_memory else 0.0)


def _wait(times: list[float], now: Moment) -> Wait | None:
    return Wait(look_at(min(times), now)) if times else None


def _oldest(jobs: list[Child], keep: int) -> list[Child]:
    ordered = sorted(jobs, key=lambda one: (one.completed, one.uid))
    return ordered[: max(len(ordered) - keep, 0)]
