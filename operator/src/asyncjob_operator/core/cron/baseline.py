"""From when on times count: a schedule owes nothing for before it was as it is now."""

from typing import Final

from asyncjob_operator.core.cron.decision import Fields, Verdict, Write
from asyncjob_operator.core.cron.snapshot import CronSnapshot
from asyncjob_operator.core.cron.standing import shown_of, standing, told_of
from asyncjob_operator.core.cron.view import CronView, Observed, stamp
from asyncjob_operator.core.moment import Moment

NAME: Final = "baseline"


def baseline(snapshot: CronSnapshot, now: Moment) -> Verdict:
    """Settle all times up to now when schedule, zone or suspension have changed."""
    cron = snapshot.cron
    seen = Observed(cron.schedule, cron.time_zone, cron.suspend)
    if cron.observed == seen:
        return None
    settled = max(cron.settled, now.wall) if _starts_anew(cron, seen) else cron.settled
    fields: Fields = {
        "settledTime": stamp(settled),
        "observed": {
            "schedule": seen.schedule,
            "timeZone": seen.time_zone,
            "suspend": seen.suspend,
        },
    }
    shown = {**standing(snapshot), **shown_of(snapshot, settled)}
    return Write(NAME, {**shown, **fields}, told=told_of(snapshot, shown))


def _starts_anew(cron: CronView, seen: Observed) -> bool:
    before = cron.observed
    if before is None:
        return False
    changed = (before.schedule, before.time_zone) != (seen.schedule, seen.time_zone)
    return changed or (before.suspend and not seen.suspend)
