"""All that one decision about a schedule may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.child import Child
from asyncjob_operator.core.cron.decision import Verdict
from asyncjob_operator.core.cron.errors import (
    BadScheduleError,
    BadTimeZoneError,
    NeverFiresError,
)
from asyncjob_operator.core.cron.schedule import Schedule, read_schedule
from asyncjob_operator.core.cron.view import CronView, Run
from asyncjob_operator.core.moment import LONGEST_WALL_WAIT, Moment
from asyncjob_operator.core.options import DAY


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a schedule has no times."""

    reason: CronReason
    message: str


Plan = Schedule | Problem


def plan_of(cron: CronView) -> Plan:
    """Return the schedule, or what is wrong with it."""
    try:
        return read_schedule(cron.schedule, cron.time_zone, cron.key)
    except (BadScheduleError, BadTimeZoneError, NeverFiresError) as error:
        return Problem(_REASONS[type(error)], str(error))


_REASONS: Final = {
    BadScheduleError: CronReason.BAD_SCHEDULE,
    BadTimeZoneError: CronReason.BAD_TIME_ZONE,
    NeverFiresError: CronReason.NEVER,
}


@dataclass(frozen=True, slots=True)
class CronSnapshot:
    """`me` is the identity of this operator. Times are monotonic seconds of this replica.

    `claim_sent_at`: when it sent the write that gave it the reservation as it is now; None if the
    reservation is not its own. `claim_seen_at`: when it first saw the reservation as it is now.
    `made`: names of reserved runs that are known to have been created. `confirmed`: UIDs of the
    jobs that the last live reads have shown to be unfinished. `long_memory`: seconds for which a
    finished run with a key is kept, whatever the history limits say.
    """

    cron: CronView
    plan: Plan
    children: tuple[Child, ...]
    me: str
    claim_sent_at: float | None
    claim_seen_at: float
    made: frozenset[str]
    confirmed: frozenset[str] = frozenset()
    keeps_history: bool = True
    long_memory: float = DAY

    @property
    def unfinished(self) -> list[Child]:
        """Return the unfinished jobs, the oldest first."""
        live = [one for one in self.children if not one.finished]
        return sorted(live, key=lambda one: (one.created, one.name))

    @property
    def pending(self) -> tuple[Run, ...]:
        """Return the reserved runs that are still to be created."""
        return tuple(run for run in self.cron.runs if run.name not in self.made)

    @property
    def alone(self) -> bool:
        """Return whether its runs must not overlap."""
        return self.cron.concurrency is not ConcurrencyPolicy.ALLOW

    @property
    def busy(self) -> bool:
        """Return whether a run is unfinished, or about to be created."""
        return bool(self.pending or self.unfinished)


Step: TypeAlias = Callable[[CronSnapshot, Moment], Verdict]


def look_at(moment: float, now: Moment) -> float:
    """Return when on the monotonic clock to look again for a calendar time."""
    return now.monotonic + min(max(moment - now.wall, 0.0), LONGEST_WALL_WAIT)
