"""Which finished jobs of a schedule go: the oldest beyond its two limits.

The guard against running a time twice is in the schedule's status, not in its jobs, so these limits
may go below the floors that retention knows.
"""

from typing import Final

from asyncjob.lifecycle.phases import Phase
from asyncjob_operator.core.cron.child import Child
from asyncjob_operator.core.cron.decision import Remove, Verdict
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.moment import Moment

NAME: Final = "history"
CHUNK: Final = 50


def history(snapshot: CronSnapshot, _now: Moment) -> Verdict:
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
    gone = _oldest(succeeded, cron.keep_succeeded) + _oldest(failed, cron.keep_failed)
    return Remove(NAME, tuple(gone[:CHUNK])) if gone else None


def _oldest(jobs: list[Child], keep: int) -> list[Child]:
    ordered = sorted(jobs, key=lambda one: (one.completed, one.uid))
    return ordered[: max(len(ordered) - keep, 0)]
