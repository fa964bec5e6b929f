"""Closed lists about schedules.

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
    """What a schedule did last, or what keeps it from doing anything."""

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


CRON_REASON_DOCS: Final[dict[CronReason, str]] = {
    CronReason.SCHEDULED: "The last run was on time, or the first is still to come.",
    CronReason.MISFIRED: "Runs were missed, and misfirePolicy had some of them made up for.",
    CronReason.LEFT_OUT: "A run was left out because an earlier one was unfinished (Forbid).",
    CronReason.SKIPPED: "Runs were missed, and misfirePolicy left all of them out.",
    CronReason.REPLACED: "A run took the place of an earlier one that was unfinished (Replace).",
    CronReason.TRIGGERED: "A run was started by trigger.",
    CronReason.TRIGGER_REFUSED: "A trigger was left out because a run was unfinished (Forbid).",
    CronReason.BACKFILLING: "Runs of a backfill are being created.",
    CronReason.BACKFILLED: "All runs of the backfill have been created.",
    CronReason.BACKFILL_REFUSED: "The range of the backfill holds more runs than its limit.",
    CronReason.NAME_TAKEN: "A run was left out: another job has its name.",
    CronReason.JOB_REFUSED: "A run was left out: the API server refuses the template's job, or it "
    "is nested too deeply.",
    CronReason.SUSPENDED: "The schedule creates nothing while it is suspended.",
    CronReason.BAD_SCHEDULE: "spec.schedule cannot be read.",
    CronReason.BAD_TIME_ZONE: "spec.timeZone is no zone of the operator's database.",
    CronReason.NEVER_FIRES: "The schedule is right, but no day will ever match it.",
}
"""A sentence for each."""

PERSISTENT_REASONS: Final = frozenset(
    {
        CronReason.SUSPENDED,
        CronReason.BAD_SCHEDULE,
        CronReason.BAD_TIME_ZONE,
        CronReason.NEVER_FIRES,
    }
)
"""These hold for as long as the spec is as it is; the others tell of one event."""
