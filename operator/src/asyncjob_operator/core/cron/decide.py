"""The decision about one schedule: an ordered chain of steps. The first effect wins."""

from typing import Final

from asyncjob_operator.core.cron.backfill import backfill
from asyncjob_operator.core.cron.baseline import baseline
from asyncjob_operator.core.cron.claim import take_over
from asyncjob_operator.core.cron.completion import complete
from asyncjob_operator.core.cron.decision import CronDecision, Hold, Wait
from asyncjob_operator.core.cron.due import due
from asyncjob_operator.core.cron.history import history
from asyncjob_operator.core.cron.snapshot import CronSnapshot, Step
from asyncjob_operator.core.cron.standing import show
from asyncjob_operator.core.cron.trigger import trigger
from asyncjob_operator.core.moment import Moment

CHAIN: Final[tuple[Step, ...]] = (
    take_over,
    baseline,
    due,
    trigger,
    backfill,
    complete,
    history,
    show,
)


def decide(snapshot: CronSnapshot, now: Moment) -> CronDecision:
    """Return the one effect due now, or when to look again without anything having changed."""
    if snapshot.cron.deleting:
        return CronDecision()
    again: float | None = None
    for step in CHAIN:
        verdict = step(snapshot, now)
        if verdict is None:
            continue
        if isinstance(verdict, Hold):
            return CronDecision(None, verdict.until)
        if not isinstance(verdict, Wait):
            return CronDecision(verdict)
        again = verdict.until if again is None else min(again, verdict.until)
    return CronDecision(None, again)
