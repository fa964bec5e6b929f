"""Closed lists about cron jobs.

Concurrency and misfire policies, and the reasons in an AsyncCronJob's status.
"""

from enum import StrEnum
from typing import Final


class ConcurrencyPolicy(StrEnum):
    """What happens when a run is due while an earlier one is unfinished."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"


class MisfirePolicy(StrEnum):
    """What happens to runs that were missed while nobody could start them."""

    SKIP = "Skip"
    FIRE_ONCE = "FireOnce"
    FIRE_ALL = "FireAll"


class CronReason(StrEnum):
    """What a cron job did last, or what keeps it from doing anything."""

    SCHEDULED = "Scheduled"
    MISFIRED = "Misfired"
    LEFT_OUT = "LeftOut"
    SKIPPED = "Skipped"
    REPLACED = "Replaced"
    TRIGGERED = "Triggered"
    TRIGGER_REFUSED = "TriggerRefused"
    BACKFILLING = "Backfilling"
    BACKFILLED = "Backfilled"
    BACKFILL_REFUSED = "BackfillRefused"
    NAME_TAKEN = "NameTaken"
    JOB_REFUSED = "JobRefused"
    SUSPENDED = "Suspended"
    BAD_SCHEDULE = "BadSchedule"
    BAD_TIME_ZONE = "BadTimeZone"
    NEVER_FIRES = "NeverFires"


PERSISTENT_REASONS: Final = frozenset(
    {
        CronReason.SUSPENDED,
        CronReason.BAD_SCHEDULE,
        CronReason.BAD_TIME_ZONE,
        CronReason.NEVER_FIRES,
    }
)
"""These hold for as long as the spec is as it is; the others tell of one event."""
