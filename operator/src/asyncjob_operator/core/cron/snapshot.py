"""All that one decision about a schedule may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from asyncjob.lifecycle.schedules import ConcurrencyPolicy, CronReason
from asyncjob_operator.core.cron.child import ScheduledJob
from asyncjob_operator.core.cron.decision import StepResult
from asyncjob_operator.core.cron.errors import (
    BadScheduleError,
    BadTimeZoneError,
    NeverFiresError,
)
from asyncjob_operator.core.cron.schedule import Schedule, parse_schedule
from asyncjob_operator.core.cron.view import CronJobView, Run
from asyncjob_operator.core.moment import MAX_WALL_CLOCK_WAIT, Now
from asyncjob_operator.core.options import DAY


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """Why a schedule has no times."""

    reason: CronReason
    message: str


ScheduleOrProblem = Schedule | ScheduleProblem


def schedule_or_problem(cron: CronJobView) -> ScheduleOrProblem:
    """Return the schedule, or what is wrong with it."""
    try:
        return parse_schedule(cron.schedule, cron.time_zone, cron.key)
    except (BadScheduleError, BadTimeZoneError, NeverFiresError) as error:
        return ScheduleProblem(_PROBLEM_REASONS[type(error)], str(error))


_PROBLEM_REASONS: Final = {
    BadScheduleError: CronReason.BAD_SCHEDULE,
    BadTimeZoneError: CronReason.BAD_TIME_ZONE,
    NeverFiresError: CronReason.NEVER_FIRES,
}


@dataclass(frozen=True, slots=True)
class CronJobSnapshot:
    """`identity` is the identity of this operator. Times are monotonic seconds of this replica.

    `reserved_at`: when it sent the write that gave it the reservation as it is now; None if the
    reservation is not its own. `reservation_observed_at`: when it first saw the reservation as it
    is now. `created`: names of reserved runs that are known to have been created.
    `verified_unfinished`: UIDs of the jobs that the last live reads have shown to be unfinished.
    `dedup_window`: seconds for which a finished run with a key is kept, whatever the history limits
    say.
    """

    cron: CronJobView
    schedule: ScheduleOrProblem
    jobs: tuple[ScheduledJob, ...]
    identity: str
    reserved_at: float | None
    reservation_observed_at: float
    created: frozenset[str]
    verified_unfinished: frozenset[str] = frozenset()
    prunes_history: bool = True
    dedup_window: float = DAY

    @property
    def unfinished(self) -> list[ScheduledJob]:
        """Return the unfinished jobs, the oldest first."""
        live = [one for one in self.jobs if not one.finished]
        return sorted(live, key=lambda one: (one.created, one.name))

    @property
    def pending_runs(self) -> tuple[Run, ...]:
        """Return the reserved runs that are still to be created."""
        return tuple(run for run in self.cron.runs if run.name not in self.created)

    @property
    def exclusive(self) -> bool:
        """Return whether its runs must not overlap."""
        return self.cron.concurrency_policy is not ConcurrencyPolicy.ALLOW

    @property
    def busy(self) -> bool:
        """Return whether a run is unfinished, or about to be created."""
        return bool(self.pending_runs or self.unfinished)


CronJobStep: TypeAlias = Callable[[CronJobSnapshot, Now], StepResult]


def recheck_at(time: float, now: Now) -> float:
    """Return when on the monotonic clock to look again for a calendar time."""
    return now.monotonic + min(max(time - now.wall, 0.0), MAX_WALL_CLOCK_WAIT)
